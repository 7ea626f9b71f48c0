//! Estimates of the spectrum from a solve: the extreme eigenvalues of the small tridiagonal matrix that a
//! Krylov method builds on its way. The only cost is storing two coefficients of each iteration.
//!
//! # Method
//! Lanczos' process projects the (preconditioned) matrix on the space searched so far. The projection is
//! tridiagonal, and its extreme eigenvalues approach those of the matrix from inside. Conjugate gradients
//! compute it implicitly: with step lengths alpha and ratios beta its diagonal is 1 / alpha_i + beta_i /
//! alpha_(i-1), and its off-diagonal entries are sqrt(beta_(i+1)) / alpha_i. The extreme eigenvalues come
//! from bisection over Sturm counts.
//!
//! # Reference
//! Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd edition, SIAM, 2003, section 6.7.3.

/// The most coefficients that are kept: later ones change the extreme eigenvalues little, and a long
/// solve takes no more memory.
pub(crate) const MOST_COEFFICIENTS: usize = 8192;

/// Times that an interval is quartered, until it is as narrow as f64 can represent.
const QUARTERINGS: usize = 32;

/// Estimates of the extreme eigenvalues of the preconditioned matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spectrum {
    /// An upper bound of the smallest eigenvalue, or a value near it.
    pub smallest: f64,
    /// A lower bound of the largest eigenvalue, or a value near it.
    pub largest: f64,
}

/// A symmetric tridiagonal matrix: the diagonal, and one entry fewer next to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tridiagonal {
    /// The diagonal.
    pub diagonal: Vec<f64>,
    /// The off-diagonal entries.
    pub off_diagonal: Vec<f64>,
}

impl Tridiagonal {
    /// Reserves memory for `rows` rows.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.diagonal.reserve(rows.saturating_sub(self.diagonal.len()));
        self.off_diagonal.reserve(rows.saturating_sub(self.off_diagonal.len()));
    }

    /// Sets the matrix to the projection that conjugate gradients have computed, from step lengths
    /// alpha and products rho = r'z.
    pub(crate) fn set_to_conjugate_gradients(&mut self, steps: &[(f64, f64)]) {
        self.diagonal.clear();
        self.off_diagonal.clear();
        for (i, &(alpha, rho)) in steps.iter().enumerate() {
            let before = if i == 0 { 0.0 } else { rho / steps[i - 1].1 / steps[i - 1].0 };
            self.diagonal.push(1.0 / alpha + before);
            if i > 0 {
                self.off_diagonal.push((rho / steps[i - 1].1).sqrt() / steps[i - 1].0);
            }
        }
    }

    /// Sets the matrix to the projection of Lanczos' process, from its diagonal and the entry
    /// that follows each.
    pub(crate) fn set_to_lanczos(&mut self, steps: &[(f64, f64)]) {
        self.diagonal.clear();
        self.off_diagonal.clear();
        self.diagonal.extend(steps.iter().map(|s| s.0));
        self.off_diagonal.extend(steps.iter().map(|s| s.1).take(steps.len().saturating_sub(1)));
    }

    /// Returns the number of eigenvalues below each `x`: negative pivots of T - x. Several counts at once
    /// take hardly longer than one, because each waits for its divisions.
    fn count_below<const N: usize>(&self, x: [f64; N]) -> [usize; N] {
        let (mut pivots, mut counts) = ([1.0; N], [0; N]);
        for (i, d) in self.diagonal.iter().enumerate() {
            let off_diagonal = if i == 0 { 0.0 } else { self.off_diagonal[i - 1] };
            for at in 0..N {
                let pivot = d - x[at] - off_diagonal * off_diagonal / pivots[at];
                pivots[at] = if pivot == 0.0 { f64::MIN_POSITIVE } else { pivot };
                counts[at] += usize::from(pivot < 0.0);
            }
        }
        counts
    }

    /// Returns the smallest and the largest eigenvalue; none for an empty matrix or one with NaN or infinity.
    pub(crate) fn extremes(&self) -> Option<Spectrum> {
        let n = self.diagonal.len();
        let radius = |i: usize| {
            let left = if i == 0 { 0.0 } else { self.off_diagonal[i - 1].abs() };
            left + self.off_diagonal.get(i).map_or(0.0, |b| b.abs())
        };
        // Gershgorin's intervals. A NaN makes the sum NaN.
        let low = (0..n).map(|i| self.diagonal[i] - radius(i)).fold(f64::INFINITY, f64::min);
        let high = (0..n).map(|i| self.diagonal[i] + radius(i)).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.diagonal.iter().chain(&self.off_diagonal).sum();
        if !(sum.is_finite() && low.is_finite() && high.is_finite()) {
            return None;
        }
        let middle = |interval: [f64; 2]| 0.5 * (interval[0] + interval[1]);
        // Two bisections at once.
        let cuts = |interval: [f64; 2]| {
            let half = middle(interval);
            [middle([interval[0], half]), half, middle([half, interval[1]])]
        };
        let mut intervals = [[low, high]; 2];
        for _ in 0..QUARTERINGS {
            let cuts = intervals.map(cuts);
            let [[a, b, c], [d, e, f]] = cuts;
            let counts = self.count_below([a, b, c, d, e, f]);
            for (end, (interval, enough)) in intervals.iter_mut().zip([1, n]).enumerate() {
                let points = [interval[0], cuts[end][0], cuts[end][1], cuts[end][2], interval[1]];
                let lower = counts[3 * end..3 * end + 3].iter().take_while(|count| **count < enough).count();
                *interval = [points[lower], points[lower + 1]];
            }
        }
        let [smallest, largest] = intervals.map(middle);
        Some(Spectrum { smallest, largest })
    }
}

impl Spectrum {
    /// Returns the spectrum of the matrix, if this is that of `sigma` times the matrix.
    pub(crate) fn of_multiple(self, sigma: f64) -> Spectrum {
        Spectrum { smallest: self.smallest / sigma, largest: self.largest / sigma }
    }

    /// Returns the largest eigenvalue over the smallest; none unless both are positive.
    pub fn condition(&self) -> Option<f64> {
        (self.smallest > 0.0).then(|| (self.largest / self.smallest).max(1.0))
    }

    /// Returns the number of iterations after which conjugate gradients must have reduced the energy norm of
    /// the error by `reduction`, for any right-hand side: Chebyshev's bound for this condition number.
    pub fn iterations(&self, reduction: f64) -> Option<f64> {
        let root = self.condition()?.sqrt();
        let rate = ((root + 1.0) / (root - 1.0)).ln();
        Some(((1.0 / reduction).acosh() / rate).ceil().max(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eigenvalues 2 - 2 cos(k pi / (n + 1)).
    fn laplacian(n: usize) -> Tridiagonal {
        Tridiagonal { diagonal: vec![2.0; n], off_diagonal: vec![-1.0; n - 1] }
    }

    #[test]
    fn extreme_eigenvalues_of_the_laplacian_are_those_of_the_formula() {
        for n in [1, 2, 3, 50, 1000] {
            let found = laplacian(n).extremes().unwrap();
            let formula = |k: usize| 2.0 - 2.0 * (k as f64 * std::f64::consts::PI / (n as f64 + 1.0)).cos();
            assert!((found.smallest - formula(1)).abs() < 1e-14, "{n}: {found:?}");
            assert!((found.largest - formula(n)).abs() < 1e-14, "{n}: {found:?}");
        }
    }

    #[test]
    fn an_empty_or_not_finite_matrix_has_no_extremes() {
        assert_eq!(Tridiagonal::default().extremes(), None);
        assert_eq!(Tridiagonal { diagonal: vec![1.0, f64::NAN], off_diagonal: vec![1.0] }.extremes(), None);
        assert_eq!(Tridiagonal { diagonal: vec![f64::INFINITY], off_diagonal: vec![] }.extremes(), None);
    }

    #[test]
    fn the_prediction_is_chebyshevs_bound() {
        let spectrum = Spectrum { smallest: 1.0, largest: 1.0 };
        assert_eq!(spectrum.iterations(1e-8), Some(1.0));
        // For large condition numbers it is near sqrt(condition) / 2 ln(2 / reduction).
        let spectrum = Spectrum { smallest: 1e-6, largest: 1.0 };
        let near = 500.0 * (2e8_f64).ln();
        assert!((spectrum.iterations(1e-8).unwrap() / near - 1.0).abs() < 1e-3);
        assert_eq!(Spectrum { smallest: -1.0, largest: 1.0 }.iterations(1e-8), None);
    }
}
