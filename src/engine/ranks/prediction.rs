//! Predicts the parts of a matrix over any number of ranks, and the time of an iteration.
//!
//! # Model
//! Iterations of one process are timed on the rows that the ranks of a machine have together. They give the
//! bytes that a machine moves in a second: a stream would move more, and how much more depends on the matrix.
//! A rank moves the bytes of its rows and of its parts of the vectors at its share of that speed. It then
//! receives the entries of x that its neighbours have: a message costs the latency of the network, and its
//! bytes the bandwidth. The slowest rank counts. A sum over all ranks costs the latency once for each
//! doubling of the number of ranks.
//!
//! # Error
//! The least time is that of the fastest round of timed iterations, with an exchange that overlaps with the
//! product. The most is that of the slowest round, with an exchange and sums that take twice as long.
//!
//! # Reference
//! R. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel
//! Computing 20, 1994.

use super::division::{Division, RankPart};
use super::network::Network;
use super::partition::{Partition, SETTING};
use super::speed::{self, Iteration, Spread};
use super::unknowns_of_a_node;
use crate::device::Cpu;
use crate::engine::device::{DeviceName, Request, Settled};
use crate::engine::matrix::Matrix;
use crate::engine::memory::MemoryPlan;
use crate::error::{Error, Result, in_words};
use crate::format::Csr;
use crate::operator::Cost;
use crate::solve;
use crate::text::{duration, thousands};
use serde::Serialize;
use std::sync::Arc;

/// Bytes of a number in vectors.
const WIDTH: usize = size_of::<f64>();

/// The ranks of a prediction.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The number of ranks.
    pub ranks: usize,
    /// The ranks that share the memory bandwidth of a machine like this one.
    pub per_machine: usize,
    /// The network between them.
    pub network: Network,
    /// How the rows are divided among them.
    pub partition: Partition,
}

/// The predicted parts of a matrix over ranks, and the time of an iteration.
#[derive(Clone, Debug, Serialize)]
pub struct RankPrediction {
    /// The method: `cg` without preconditioner for a symmetric matrix, or else `pagerank`.
    pub method: &'static str,
    /// How the rows are divided among the ranks.
    pub partition: String,
    /// The part of each rank.
    pub parts: Vec<RankPart>,
    /// Estimated memory of the rank that needs the most, in a solve by cg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<RankMemory>,
    /// The most bytes that a rank moves, over the mean.
    pub balance: f64,
    /// Ranks that share the memory bandwidth of a machine.
    pub ranks_per_machine: usize,
    /// The network of the prediction.
    pub network: Network,
    /// Whether iterations were timed on this machine. If not, a stream was.
    pub iterations_are_timed: bool,
    /// GB/s that this machine moves in iterations on the rows that the ranks of a machine have together.
    pub gigabytes_per_second: f64,
    /// Predicted seconds of an iteration: all of it, and its parts on the slowest rank.
    pub seconds: f64,
    /// An estimate of the least seconds.
    pub seconds_least: f64,
    /// An estimate of the most seconds.
    pub seconds_most: f64,
    /// Seconds of the memory traffic.
    pub seconds_memory: f64,
    /// Seconds of the exchange with the neighbours.
    pub seconds_halo: f64,
    /// Seconds of the sums over all ranks.
    pub seconds_sums: f64,
    /// Seconds of an iteration of one process on this machine, with all rows.
    pub seconds_alone: f64,
    /// GB/s that it moves.
    pub gigabytes_per_second_alone: f64,
}

/// Estimated bytes of memory of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RankMemory {
    /// Main memory of a solve on the CPU.
    pub on_cpu: u64,
    /// Memory of the GPU in a solve on a GPU.
    pub on_gpu: u64,
    /// Main memory of such a solve.
    pub beside_gpu: u64,
}

impl RankMemory {
    /// Estimates the memory of a solve by cg without preconditioner, for one right-hand side in f64.
    fn of(part: &RankPart) -> Result<RankMemory> {
        let request = Request { device: "cpu".to_owned(), ..Request::default() };
        let settled = request.settle()?;
        let halo = (WIDTH * (part.received + part.sent)) as u64;
        let plan = |device: DeviceName| {
            let settled = Settled { device, ..settled.clone() };
            let size = (part.rows as u64, part.entries as u64);
            MemoryPlan::new(solve::Method::Cg, &request, &settled, size, false, false)
        };
        let (cpu, gpu) = (plan(DeviceName::Cpu(None)), plan(DeviceName::Cuda(0)));
        Ok(RankMemory {
            on_cpu: cpu.on_host() + halo,
            on_gpu: gpu.on_device() + halo,
            beside_gpu: gpu.on_host() + halo,
        })
    }

    fn of_largest(parts: &[RankPart]) -> Result<Option<RankMemory>> {
        let all = parts.iter().map(RankMemory::of).collect::<Result<Vec<_>>>()?;
        Ok(all.into_iter().max_by_key(|memory| memory.on_cpu))
    }
}

/// How often an iteration of a method touches its vectors, and how many times it adds over all ranks.
struct Method {
    name: &'static str,
    iteration: Iteration,
    /// n-vectors that are read or written, in addition to those of the product.
    vectors: usize,
    sums: usize,
}

const CG: Method = Method { name: "cg", iteration: Iteration::Cg, vectors: 8, sums: 2 };
/// Includes the copy of x into a complete vector.
const PAGERANK: Method = Method { name: "pagerank", iteration: Iteration::Pagerank, vectors: 7, sums: 1 };

impl Matrix {
    /// Predicts the parts of the matrix over ranks, and the time of an iteration, from the time of
    /// iterations on this machine.
    pub fn over_ranks(&self, cluster: &Cluster) -> Result<RankPrediction> {
        const MOST: usize = 1 << 16;
        let (rows, cols) = (self.rows(), self.cols());
        if rows != cols {
            return Err(Error::NotSquare { rows, cols, solver: "a solve over ranks" });
        }
        let within = |setting: &'static str, value: usize, most: usize| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::setting(setting, value, format!("it must lie between 1 and {most}"))),
        };
        within("ranks", cluster.ranks, MOST)?;
        within("ranks-per-machine", cluster.per_machine, cluster.ranks)?;
        let symmetric = !matches!(self.symmetry()?, crate::format::stats::Verdict::No(_));
        let transposed = if symmetric { None } else { Some(self.csr().transposed()?) };
        let (matrix, method) = match transposed {
            Some(transposed) => (Arc::new(transposed), PAGERANK),
            None => (Arc::clone(&self.csr), CG),
        };
        let matrix = &matrix;
        if !symmetric && !cluster.partition.is_in_order() {
            let reason = "the matrix is not symmetric, so the prediction is that of pagerank, which divides its vertices by entries";
            return Err(Error::setting(SETTING, &cluster.partition, reason));
        }
        let together = if symmetric { unknowns_of_a_node(matrix) } else { 1 };
        let division = Division::by(&cluster.partition, (matrix, self.name()), cluster.ranks, together)?;
        let times = Times::measure(matrix, &method, &division, cluster.per_machine)?;
        predict(matrix, &method, &division, cluster, &times)
    }
}

/// The measured times of an iteration on this machine.
struct Times {
    /// On the rows of the ranks of a machine, with the bytes that the iteration moves.
    machine: (Spread, u64),
    /// On all rows.
    alone: (Spread, u64),
    /// Whether both times are those of iterations.
    timed: bool,
}

impl Times {
    fn measure(matrix: &Arc<Csr>, method: &Method, division: &Division, per_machine: usize) -> Result<Times> {
        let cpu = Cpu::new(None)?;
        let bytes = |matrix: &Csr| {
            Cost::of_csr(matrix, WIDTH).bytes + (method.vectors * WIDTH * matrix.rows()) as u64
        };
        let time = |matrix: &Arc<Csr>| speed::measure(&cpu, matrix, method.iteration, bytes(matrix));
        let links_only = matrix.values().are_ones() && method.iteration == Iteration::Pagerank;
        let whole = if links_only { Arc::new(matrix.without_values()) } else { Arc::clone(matrix) };
        let (alone, timed) = time(&whole)?;
        let alone = (alone, bytes(&whole));
        let rows = division.rows_of_first(per_machine);
        if rows.len() == matrix.rows() {
            return Ok(Times { machine: alone, alone, timed });
        }
        let part = Arc::new(whole.submatrix(&rows)?);
        let (machine, timed_too) = time(&part)?;
        Ok(Times { machine: (machine, bytes(&part)), alone, timed: timed && timed_too })
    }
}

fn predict(
    matrix: &Csr,
    method: &Method,
    division: &Division,
    cluster: &Cluster,
    times: &Times,
) -> Result<RankPrediction> {
    let Cluster { per_machine, network, .. } = *cluster;
    let mut parts = division.parts(matrix);
    let of_entry = matrix.values().width() + size_of::<u32>();
    for part in &mut parts {
        let vectors = WIDTH * ((method.vectors + 2) * part.rows + 2 * (part.received + part.sent));
        part.bytes = (of_entry * part.entries + matrix.row_offsets().width() * part.rows + vectors) as u64;
    }
    let most = parts.iter().map(|part| part.bytes).max().unwrap_or(0);
    let mean = parts.iter().map(|part| part.bytes).sum::<u64>() as f64 / parts.len() as f64;
    let (machine, machine_bytes) = times.machine;
    let memory =
        |part: &RankPart| machine.times(part.bytes as f64 * per_machine as f64 / machine_bytes.max(1) as f64);
    let halo = |part: &RankPart| {
        let longest = part.received.max(part.sent) * WIDTH;
        part.neighbours as f64 * network.latency + longest as f64 / network.bandwidth
    };
    parts.iter_mut().for_each(|part| part.seconds = memory(part).median + halo(part));
    let slowest = parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)).copied().unwrap_or_default();
    let doublings = f64::from(usize::BITS - (parts.len() - 1).leading_zeros());
    let sums = method.sums as f64 * doublings * network.latency;
    let of_largest = if method.name == CG.name { RankMemory::of_largest(&parts)? } else { None };
    let (work, exchange) = (memory(&slowest), halo(&slowest));
    let gigabytes = |(spread, bytes): (Spread, u64)| bytes as f64 / spread.median.max(1e-12) / 1e9;
    Ok(RankPrediction {
        method: method.name,
        memory: of_largest,
        partition: cluster.partition.to_string(),
        balance: if mean > 0.0 { most as f64 / mean } else { 1.0 },
        ranks_per_machine: per_machine,
        network,
        iterations_are_timed: times.timed,
        gigabytes_per_second: gigabytes(times.machine),
        seconds: slowest.seconds + sums,
        seconds_least: work.least.max(exchange) + sums,
        seconds_most: work.most + 2.0 * (exchange + sums),
        seconds_memory: work.median,
        seconds_halo: exchange,
        seconds_sums: sums,
        seconds_alone: times.alone.0.median,
        gigabytes_per_second_alone: gigabytes(times.alone),
        parts,
    })
}

/// The most parts that are listed one by one.
const LISTED: usize = 8;

impl RankPrediction {
    /// Returns a line for each fact. A continuation line has no label.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let range = |of: &dyn Fn(&RankPart) -> usize| {
            let numbers = || self.parts.iter().map(of);
            let [least, most] = [numbers().min(), numbers().max()].map(|n| n.unwrap_or(0) as u64);
            if least == most {
                thousands(most)
            } else {
                format!("{} to {}", thousands(least), thousands(most))
            }
        };
        let mut lines = vec![
            (
                "ranks",
                format!(
                    "{}, each with {} rows and {} entries; the largest moves {:.2} times the mean",
                    thousands(self.parts.len() as u64),
                    range(&|part| part.rows),
                    range(&|part| part.entries),
                    self.balance
                ),
            ),
            ("partition", self.partition.clone()),
            (
                "halo",
                format!(
                    "in an iteration, a rank receives {} numbers of 8 bytes, and has {} neighbours; all receive {}",
                    range(&|part| part.received),
                    range(&|part| part.neighbours),
                    thousands(self.parts.iter().map(|part| part.received as u64).sum())
                ),
            ),
        ];
        if self.parts.len() <= LISTED {
            lines.extend(self.parts.iter().enumerate().map(|(rank, part)| {
                let [rows, entries, received] =
                    [part.rows, part.entries, part.received].map(|n| thousands(n as u64));
                let numbers = format!("{rows} rows, {entries} entries, {received} received");
                ("", format!("rank {rank}: {numbers}, neighbours: {}", part.neighbours))
            }));
        }
        lines.extend(self.memory.map(|memory| {
            let [cpu, gpu, beside] = [memory.on_cpu, memory.on_gpu, memory.beside_gpu].map(in_words);
            let text = format!(
                "of the largest rank about {cpu} on the CPU, or {gpu} on a GPU and {beside} of main memory beside it"
            );
            ("memory", text)
        }));
        let Network { latency, bandwidth } = self.network;
        let sharing = match self.ranks_per_machine {
            1 => "a rank on each machine".to_owned(),
            several => format!("{several} ranks on each machine"),
        };
        lines.push((
            "network",
            format!("latency {}, {:.1} GB/s; {sharing}", duration(latency), bandwidth / 1e9),
        ));
        lines.push((
            "prediction",
            format!(
                "{} an iteration of {}, between {} and {}: memory {} (at {:.1} GB/s a machine), halo {}, sums {}",
                duration(self.seconds),
                self.method,
                duration(self.seconds_least),
                duration(self.seconds_most),
                duration(self.seconds_memory),
                self.gigabytes_per_second,
                duration(self.seconds_halo),
                duration(self.seconds_sums)
            ),
        ));
        lines.push((
            "",
            format!(
                "one process on one machine {} (at {:.1} GB/s): {}",
                duration(self.seconds_alone),
                self.gigabytes_per_second_alone,
                compared(self.seconds_alone / self.seconds)
            ),
        ));
        let measured = match self.iterations_are_timed {
            true => "both speeds are those of iterations timed on this machine now",
            false => "both speeds are those of a stream, because iterations could not be timed",
        };
        lines.push(("", measured.to_owned()));
        lines
    }
}

/// Describes how many times as long one process takes as the ranks.
fn compared(ratio: f64) -> String {
    match ratio >= 1.0 {
        true => format!("{ratio:.1} times as long"),
        false => format!("the ranks take {:.1} times as long", 1.0 / ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_ranks_and_one_process_is_named() {
        assert_eq!(compared(1.96), "2.0 times as long");
        assert_eq!(compared(0.01), "the ranks take 100.0 times as long");
    }

    #[test]
    fn the_memory_time_of_a_rank_follows_from_the_times_of_iterations() {
        let matrix = Matrix::open("poisson2d:64x64").unwrap();
        let network = Network { latency: 1e-6, bandwidth: 1e9 };
        let cluster = Cluster { ranks: 4, per_machine: 2, network, partition: Partition::Entries };
        let division = Division::in_order(vec![0, 1024, 2048, 3072, 4096]);
        let spread = Spread { least: 1e-3, median: 2e-3, most: 5e-3 };
        let times =
            Times { machine: (spread, 1_000_000), alone: (spread.times(3.0), 3_000_000), timed: true };
        let found = predict(matrix.csr(), &CG, &division, &cluster, &times).unwrap();
        let share = 2.0 * found.parts[1].bytes as f64 / 1e6;
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(found.seconds_memory, 2e-3 * share) && close(found.gigabytes_per_second, 0.5));
        assert!(close(found.seconds_least, 1e-3 * share + found.seconds_sums));
        assert!(close(found.seconds_most, 5e-3 * share + 2.0 * (found.seconds_halo + found.seconds_sums)));
        assert!(close(found.seconds_alone, 6e-3) && close(found.gigabytes_per_second_alone, 0.5));
    }

    #[test]
    fn a_prediction_adds_memory_halo_and_sums_of_the_slowest_rank() {
        let matrix = Matrix::open("poisson2d:64x64").unwrap();
        let network = Network { latency: 1e-3, bandwidth: 1e6 };
        let cluster =
            |ranks, per_machine| Cluster { ranks, per_machine, network, partition: Partition::Entries };
        let of = |ranks, per_machine| matrix.over_ranks(&cluster(ranks, per_machine)).unwrap();
        let four = of(4, 1);
        assert_eq!((four.method, four.parts.len()), ("cg", 4));
        // Two neighbours with 64 numbers each, and two sums of two doublings.
        assert!((four.seconds_halo - (2e-3 + 128.0 * 8.0 / 1e6)).abs() < 1e-12);
        assert!((four.seconds_sums - 4e-3).abs() < 1e-12);
        assert_eq!(four.seconds, four.seconds_memory + four.seconds_halo + four.seconds_sums);
        assert!(four.iterations_are_timed && four.seconds_alone > 0.0);
        assert!(four.seconds_least <= four.seconds && four.seconds <= four.seconds_most);
        let between =
            format!(", between {} and {}: ", duration(four.seconds_least), duration(four.seconds_most));
        assert!(four.lines().iter().any(|(_, line)| line.contains(&between)), "{:?}", four.lines());
        let one = of(1, 1);
        assert_eq!((one.seconds_halo, one.seconds_sums, one.balance), (0.0, 0.0, 1.0));
        assert!(matrix.over_ranks(&cluster(0, 1)).is_err());
        assert!(matrix.over_ranks(&cluster(4, 5)).is_err());
        let graph = Matrix::open_graph("rmat:scale=6,factor=4").unwrap();
        let by_coordinates = Cluster { partition: Partition::Coordinates, ..cluster(3, 3) };
        assert!(graph.over_ranks(&by_coordinates).is_err());
        let graph = graph.over_ranks(&cluster(3, 3)).unwrap();
        assert_eq!(graph.method, "pagerank");
        assert!(graph.lines().iter().any(|(_, line)| line.contains("3 ranks on each machine")));
    }
}
