//! The names, programs and sweeps of MINRES; see the [method](super).

use crate::device::formula::{names, product, program, sweep};
use crate::device::{Formula, Op, Product};
use crate::solve::recurrence::{CEILING, FIRST, RR, SECOND, TARGET};

names! {
    /// The newer and the older of the vectors that exchange their roles: y and old, w2 and w1, z and z_next.
    /// `old` becomes the next y, `w1` the next w. z, z_next and r exist only with a preconditioner.
    vectors v { x, y, old, w2, w1, q, z, z_next, r }
    scalars s {
        rr, target, ceiling,
        /// z'q, beta_k^2 and beta_(k+1)^2.
        zq, square, square_next,
        beta, beta_next, beta_old, alpha,
        /// The rotation.
        c, s, delta_bar, gamma_bar, delta, gamma, epsilon, epsilon_old, phi, phi_bar,
        /// Coefficients of the sweeps.
        of_q, of_y, of_old, of_v, of_w1, of_w2, of_r, r_of_y,
        /// The sum of the squares of the Lanczos coefficients, and the square of the relative
        /// normal residual to reach.
        squares, normal,
        /// Iterations of this run, and their limit.
        done, limit,
        one, zero, a, b, tolerated,
        /// y_(k+1)'z_k: zero except for rounding.
        cross,
        /// The power of two that multiplies A; 1 unless squares of its entries leave the range of numbers.
        sigma,
    }
}
const _: () = assert!(s::rr.0 == RR.0 && s::target.0 == TARGET.0 && s::ceiling.0 == CEILING.0);
/// Number of slots in a workspace.
pub(crate) const SLOTS: usize = s::COUNT;

/// Computes alpha, and the coefficients of the next Lanczos vector.
const AFTER_ZQ: &[Op] = program!(
    stop NotFinite if not_finite(zq);
    zq = zq * sigma;
    a = cross / beta_old;
    alpha = zq / square;
    alpha = alpha - a;
    of_q = sigma / beta;
    of_y = alpha / beta;
    of_old = beta / beta_old;
);

/// Computes the rotation that eliminates beta_(k+1), and the coefficients for w and x. The test for least
/// squares uses the previous x: ||A r_(k-1)|| = phi_bar_(k-1) |(gamma_bar, delta_bar')|.
const ROTATE: &[Op] = program!(
    stop NotFinite if not_finite(square_next);
    stop IndefinitePreconditioner if negative(square_next);
    beta_next = sqrt(square_next);
    // delta = c delta_bar + s alpha
    a = c * delta_bar;
    b = s * alpha;
    delta = a + b;
    // gamma_bar = s delta_bar - c alpha
    a = s * delta_bar;
    b = c * alpha;
    gamma_bar = a - b;
    // epsilon' = s beta', delta_bar' = -c beta'
    epsilon_old = epsilon;
    epsilon = s * beta_next;
    a = c * beta_next;
    delta_bar = zero - a;
    // the mean of the squares in a row, times the square of the tolerance
    a = alpha * alpha;
    squares = squares + a;
    squares = squares + square_next;
    squares = squares + square_next;
    done = done + one;
    a = squares / done;
    tolerated = normal * a;
    // gamma_bar^2 + delta_bar'^2
    a = gamma_bar * gamma_bar;
    b = delta_bar * delta_bar;
    b = a + b;
    stop LeastSquares if b <= tolerated;
    // gamma = |(gamma_bar, beta')|
    a = a + square_next;
    gamma = sqrt(a);
    c = gamma_bar / gamma;
    s = beta_next / gamma;
    phi = c * phi_bar;
    phi_bar = s * phi_bar;
    of_v = one / beta;
    of_v = of_v / gamma;
    of_w1 = epsilon_old / gamma;
    of_w2 = delta / gamma;
    beta_old = beta;
    beta = beta_next;
    square = square_next;
);

/// Completes an iteration once r'r is computed.
const COUNTED: &[Op] = program!(
    stop NotFinite if not_finite(rr);
    note FIRST = alpha;
    note SECOND = beta;
    count rr;
    stop Converged if rr <= target;
    stop Diverged if ceiling <= rr;
    stop Limit if limit <= done;
);

/// Concatenates programs, which must have `N` operations in total.
const fn joined<const N: usize>(programs: &[&[Op]]) -> [Op; N] {
    let mut all = [Op::Count(s::rr); N];
    let (mut i, mut to) = (0, 0);
    while i < programs.len() {
        let mut j = 0;
        while j < programs[i].len() {
            all[to] = programs[i][j];
            (j, to) = (j + 1, to + 1);
        }
        i += 1;
    }
    assert!(to == N, "the programs do not have N operations in total");
    all
}

/// Completes a step without preconditioner: ||r|| = |phi_bar|.
const AFTER_STEP: &[Op] =
    &joined::<{ ROTATE.len() + 1 + COUNTED.len() }>(&[ROTATE, program!(rr = phi_bar * phi_bar;), COUNTED]);
/// Follows y'z with a preconditioner: the coefficients of r = s^2 r - phi / gamma y'.
const AFTER_SQUARE: &[Op] =
    &joined::<{ ROTATE.len() + 2 }>(&[ROTATE, program!(of_r = s * s; r_of_y = phi / gamma;)]);

/// Computes the first y'z.
pub(super) const FIRST_SQUARE: Product = product!({ z = M y; square = <y, z> } then {
    stop NotFinite if not_finite(square);
    stop IndefinitePreconditioner if not_positive(square);
});
pub(super) const CURVATURE: Product = product!({ q = A y; zq = <y, q> } then (AFTER_ZQ));
pub(super) const CURVATURE_PRECONDITIONED: Product = product!({ q = A z; zq = <z, q> } then (AFTER_ZQ));
pub(super) const NEXT_SQUARE: Product =
    product!({ z_next = M old; square_next = <old, z_next> } then (AFTER_SQUARE));

/// Computes the initial r'r; without preconditioner it is beta_1^2 as well.
pub(super) const NORM: Formula = sweep!({ "minres_norm": rr = <y, y>; } then { square = rr; });
/// Performs the update of w and x deferred by the previous iteration, then computes the next Lanczos vector.
pub(super) const STEP: Formula = sweep!({
    "minres_step":
    w1 = of_v * old - of_w1 * w1 - of_w2 * w2;
    x = x + phi * w1;
    old = of_q * q - of_y * y - of_old * old;
    square_next = <old, old>;
    cross = <old, y>;
} then (AFTER_STEP));
/// Performs the update that the last step deferred.
pub(super) const FINISH: Formula = sweep!({
    "minres_finish":
    w1 = of_v * old - of_w1 * w1 - of_w2 * w2;
    x = x + phi * w1;
});
/// Computes the next Lanczos vector.
pub(super) const LANCZOS: Formula = sweep!({ "minres_lanczos": old = of_q * q - of_y * y - of_old * old; });
/// Updates w, x and r, and computes r'r.
pub(super) const UPDATE: Formula = sweep!({
    "minres_update":
    w1 = of_v * z - of_w1 * w1 - of_w2 * w2;
    x = x + phi * w1;
    r = of_r * r - r_of_y * old;
    rr = <r, r>;
    cross = <old, z>;
} then (COUNTED));
