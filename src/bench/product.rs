//! Measures y = A x for the backends of one matrix on one device; x and y may have several columns.

use super::cases::Case;
use super::record::{Row, Spread};
use super::study::Protocol;
use crate::backend::timing::{
    Checked, ProductTimer, Repeated, Timed, check_repeated, distributions, operands, rest,
};
use crate::backend::{Choice, Pick};
use crate::device::stream;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::scalar::Scalar;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Least time of a sample without a fixed number of products: short, because a busy machine
/// has only short idle gaps.
const SECONDS: f64 = 1e-4;
/// Products of a sample on a device that runs them without the host.
const PRODUCTS: usize = 64;
/// Samples of a round: as many as fit into the time of a round, within these limits.
const SAMPLES: std::ops::RangeInclusive<usize> = 3..=20;
const ROUND_SECONDS: f64 = 0.1;
/// Sizes of streams for each power of two: bytes are compared with a stream over as many bytes, to
/// within 9 %, and never more.
const SIZES: f64 = 8.0;
/// Bytes of operators that take turns; the operators of larger groups are measured in several groups.
pub(super) const TURNS: u64 = 6 << 30;

/// An operator with the samples of its times.
struct Runner<D: Pick<T>, T: Scalar> {
    row: Row,
    timer: ProductTimer<D, T>,
    plain: Vec<f64>,
    dot: Vec<f64>,
    cold: Vec<f64>,
    /// Products of a sample.
    each: usize,
    /// Seconds of a product, from the last one that was timed.
    one: f64,
}

/// The matrix, x, and how to measure.
struct Group<'a, D: Pick<T>, T: Scalar> {
    device: &'a D,
    matrix: &'a Arc<Csr>,
    protocol: &'a Protocol,
    cancel: &'a AtomicBool,
    x: Vec<T>,
    /// y before the first product.
    start: Vec<T>,
    /// The number of columns of x and y.
    k: usize,
    /// GB/s by the number of bytes.
    streams: BTreeMap<u64, f64>,
}

/// Measures cases that differ only in the backend, and passes each finished row to `done`. `before` is called
/// with the label of a case before it is built. Once `cancel` is set, cases that lack samples have no row.
pub(super) fn measure<D: Pick<T>, T: Scalar>(
    device: &D,
    matrix: &Arc<Csr>,
    cases: &[Case],
    protocol: &Protocol,
    cancel: &AtomicBool,
    before: &mut dyn FnMut(&Row),
    done: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let k = cases.first().and_then(|case| case.row.columns).unwrap_or(1);
    // With beta = 0 no product reads y.
    let shape = [matrix.cols(), if protocol.scaling[1] == 0.0 { 0 } else { matrix.rows() }];
    let [x, start] = if protocol.stochastic { distributions(shape, k) } else { operands(shape, k) };
    let mut group = Group { device, matrix, protocol, cancel, x, start, k, streams: BTreeMap::new() };
    let mut runners: Vec<Runner<D, T>> = Vec::new();
    for case in cases {
        let mut row = case.row.clone();
        describe(&mut row, matrix);
        before(&row);
        if group.is_cancelled() {
            return Ok(());
        }
        match group.prepare(row.clone()) {
            Ok(runner) => runners.push(runner),
            Err(e) => done(Row { error: Some(e.to_string()), ..row })?,
        }
        if runners.iter().map(|runner| runner.row.storage).sum::<u64>() > TURNS {
            group.finish(std::mem::take(&mut runners), done)?;
        }
    }
    group.finish(runners, done)
}

/// Enters the sizes of the matrix.
pub(super) fn describe(row: &mut Row, matrix: &Csr) {
    row.rows = matrix.rows() as u64;
    row.cols = matrix.cols() as u64;
    row.entries = matrix.nnz() as u64;
    row.longest = (0..matrix.rows()).map(|i| matrix.row_range(i).len() as u64).max().unwrap_or(0);
}

/// Returns the largest error of a product as a multiple of its bound. A product that is off by more than
/// rounding is an error.
pub(super) fn judged(checked: &Checked) -> Result<f64> {
    if checked.is_right() {
        return Ok(checked.worst);
    }
    let &Checked { row, column, worst: bounds, values: [found, expected] } = checked;
    Err(Error::WrongProduct { row, column, found, expected, bounds })
}

/// Returns the number of bytes of the stream that represents this many bytes.
fn size(bytes: u64) -> u64 {
    let steps = ((bytes.clamp(1, stream::LARGEST) as f64).log2() * SIZES).floor();
    (steps / SIZES).exp2().ceil() as u64
}

impl<D: Pick<T>, T: Scalar> Group<'_, D, T> {
    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Builds the operator of a case, and verifies its first product.
    fn prepare(&self, mut row: Row) -> Result<Runner<D, T>> {
        let (device, matrix, protocol, k) = (self.device, self.matrix, self.protocol, self.k);
        let choice = Choice::resolve(D::KIND, D::DEFAULT_BACKEND, &row.backend)?;
        let began = Instant::now();
        let size = device.gpu_size().without_shared_launches();
        let settled = choice.settle_columns(matrix, size_of::<T>(), &size, k)?;
        let operator = settled.build_for::<D, T>(device, matrix, 0, k)?;
        device.synchronize()?;
        row.build_seconds = Some(began.elapsed().as_secs_f64());
        row.label = settled.label();
        row.plan = operator.plan_of(k);
        let (cost, [_, beta]) = (operator.cost_of(k), protocol.scaling);
        let read = if beta == 0.0 { 0 } else { matrix.rows() * k * size_of::<T>() };
        (row.bytes, row.flops, row.storage) = (cost.bytes + read as u64, cost.flops, operator.storage());
        let cold = protocol.cold && D::BATCH > 1 && cost.bytes < crate::backend::timing::FLUSH as u64;
        let mut timer =
            ProductTimer::new(operator, &self.x, k, cold)?.scaled(protocol.scaling, &self.start)?;
        let began = Instant::now();
        timer.seconds(Timed::Plain, 1)?;
        row.first_seconds = Some(began.elapsed().as_secs_f64());
        let mut y = vec![T::default(); matrix.rows() * k];
        row.transfer_seconds = Some(timer.transfer(&self.x, &mut y)?);
        row.checked = Some(self.verify(&timer, &y)?);
        let mut one = timer.seconds(Timed::Plain, 1)?;
        for _ in 2..protocol.warm_up {
            one = timer.seconds(Timed::Plain, 1)?;
        }
        if let Some(occupancy) = timer.operator().occupancy()? {
            row.registers = Some(occupancy.registers);
            row.resident = Some(occupancy.resident);
            row.blocks = Some(occupancy.blocks);
            row.occupancy = occupancy.percent;
        }
        Ok(Runner { row, timer, plain: vec![], dot: vec![], cold: vec![], each: 1, one })
    }

    /// Returns the largest error of y = alpha A x + beta y, after all products so far, as a multiple of its
    /// bound. A y that is off by more than rounding is an error.
    fn verify(&self, timer: &ProductTimer<D, T>, y: &[T]) -> Result<f64> {
        let (scaling, products) = (self.protocol.scaling, timer.products());
        self.verify_as(y, &Repeated { scaling, products, start: &self.start })
    }

    fn verify_as(&self, y: &[T], repeated: &Repeated<'_, T>) -> Result<f64> {
        judged(&check_repeated(self.matrix, &self.x, y, self.k, repeated))
    }

    /// Measures runners in turns, verifies what their products left, and passes on their rows.
    fn finish(
        &mut self,
        mut runners: Vec<Runner<D, T>>,
        done: &mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<()> {
        let sizes: std::collections::BTreeSet<u64> =
            runners.iter().map(|runner| size(runner.row.bytes)).collect();
        let mut failed = vec![None; runners.len()];
        for round in 1..=self.protocol.rounds {
            for &bytes in &sizes {
                if self.is_cancelled() {
                    return Ok(());
                }
                let began = Instant::now();
                let measured = stream::measure(self.device, bytes)?;
                rest::<D>(began.elapsed().as_secs_f64());
                let fastest = self.streams.entry(bytes).or_default();
                *fastest = fastest.max(measured);
            }
            for (runner, failed) in runners.iter_mut().zip(&mut failed).filter(|(_, failed)| failed.is_none())
            {
                let is_last = round == self.protocol.rounds;
                *failed = self.round(runner, is_last).err().map(|e| e.to_string());
            }
        }
        if self.is_cancelled() {
            return Ok(());
        }
        for (mut runner, failed) in runners.into_iter().zip(failed) {
            let row = &mut runner.row;
            row.error = failed;
            if row.error.is_none() {
                row.seconds = Spread::of(&runner.plain, runner.each);
                row.dot_seconds = Spread::of(&runner.dot, runner.each);
                row.cold_seconds = Spread::of(&runner.cold, runner.each);
                row.stream = self.streams.get(&size(row.bytes)).copied();
            }
            done(runner.row)?;
        }
        Ok(())
    }

    /// Verifies the y that products of this kind left on the device.
    fn verify_last(&self, timer: &ProductTimer<D, T>, timed: Timed) -> Result<()> {
        let mut y = vec![T::default(); self.matrix.rows() * self.k];
        timer.result(&mut y)?;
        // A product with a dot product is not scaled.
        let worst = match timed {
            Timed::Dot => self.verify_as(&y, &Repeated::once()),
            _ => self.verify(timer, &y),
        };
        worst.map(|_| ())
    }

    /// Takes the samples of one round, until the run is cancelled, and verifies the y that they leave: that
    /// of the last product, and in every round if y has a part of every product, because of beta.
    fn round(&self, runner: &mut Runner<D, T>, is_last: bool) -> Result<()> {
        let protocol = self.protocol;
        let goes_on = |_: &usize| !self.is_cancelled();
        let verifies = is_last || protocol.scaling[1] != 0.0;
        if runner.one < ROUND_SECONDS && goes_on(&0) {
            runner.one = runner.timer.seconds(Timed::Plain, 2)?;
        }
        let one = runner.one;
        let samples;
        (runner.each, samples) = counts(protocol, one, D::BATCH);
        let most = most_products(one);
        let Runner { timer, plain, dot, cold, each, row, .. } = runner;
        for _ in (0..samples).take_while(goes_on) {
            plain.push(sample::<D, T>(timer, Timed::Plain, *each)?);
        }
        if verifies {
            self.verify_last(timer, Timed::Plain)?;
        }
        if protocol.dot && row.rows == row.cols {
            for _ in (0..samples).take_while(goes_on) {
                dot.push(sample::<D, T>(timer, Timed::Dot, *each)?);
            }
            if verifies && !dot.is_empty() {
                self.verify_last(timer, Timed::Dot)?;
            }
        }
        let makes_cold = protocol.cold && D::BATCH > 1 && row.bytes < crate::backend::timing::FLUSH as u64;
        let cold_samples = if makes_cold { *SAMPLES.start() } else { 0 };
        for _ in (0..cold_samples).take_while(goes_on) {
            let both = sample::<D, T>(timer, Timed::Cold, PRODUCTS.min(most))?;
            cold.push(both - sample::<D, T>(timer, Timed::Flush, PRODUCTS.min(most))?);
        }
        if verifies && !cold.is_empty() {
            self.verify_last(timer, Timed::Cold)?;
        }
        Ok(())
    }
}

/// Returns the most products of this time in one round.
fn most_products(one: f64) -> usize {
    ((ROUND_SECONDS / one) as usize).max(1)
}

/// Returns the products of a sample, and the samples of a round, of products that take `one` second each on a
/// device that runs `batch` of them without the host.
pub(super) fn counts(protocol: &Protocol, one: f64, batch: usize) -> (usize, usize) {
    let most = most_products(one);
    let enough = ((SECONDS / one).clamp(1.0, 1000.0) as usize * batch.min(PRODUCTS)).min(most);
    let within = protocol.seconds.map_or(usize::MAX, |limit| ((limit / one) as usize).max(1));
    let each = protocol.products.unwrap_or(if protocol.samples.is_some() { 1 } else { enough }).min(within);
    let least = if one < ROUND_SECONDS { *SAMPLES.start() } else { 1 };
    let by_time = (most / each).clamp(least, *SAMPLES.end());
    (each, protocol.samples.unwrap_or(by_time))
}

/// Times products, and lets a GPU rest as long as it worked.
fn sample<D: Pick<T>, T: Scalar>(timer: &mut ProductTimer<D, T>, timed: Timed, times: usize) -> Result<f64> {
    let seconds = timer.seconds(timed, times)?;
    rest::<D>(seconds * times as f64);
    Ok(seconds)
}
