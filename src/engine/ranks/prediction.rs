//! Predicts the parts of a matrix over any number of ranks, and the time of an iteration.
//!
//! # Model
//! A rank moves the bytes of its rows and of its parts of the vectors at the bandwidth of its memory. It then receives the entries of
//! x that its neighbours have: a message costs the latency of the network, and its bytes the bandwidth. The slowest rank counts. A sum
//! over all ranks costs the latency once for each doubling of the number of ranks. Nothing overlaps.
//!
//! # Reference
//! R. Hockney, The communication challenge for MPP: Intel Paragon and Meiko CS-2, Parallel Computing 20, 1994.

use super::division::{Division, RankPart};
use super::partition::{Partition, SETTING};
use super::unknowns_of_a_node;
use crate::device::{Cpu, Ranks, stream};
use crate::engine::device::{DeviceName, Request, Settled};
use crate::engine::matrix::Matrix;
use crate::engine::memory::MemoryPlan;
use crate::error::{Error, Result, in_words};
use crate::format::Csr;
use crate::operator::Cost;
use crate::solve;
use crate::text::{duration, thousands};
use serde::Serialize;
use std::time::Instant;

/// Bytes of a number in vectors.
const WIDTH: usize = size_of::<f64>();

/// The network between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Network {
    /// Seconds of a message without content.
    pub latency: f64,
    /// Bytes per second of a long message.
    pub bandwidth: f64,
}

/// Two microseconds and 10 GB/s: a cluster network of 100 Gbit/s.
impl Default for Network {
    fn default() -> Network {
        Network { latency: 2e-6, bandwidth: 1e10 }
    }
}

impl Network {
    /// Measures messages between the first two ranks; none for one rank. All ranks call this together.
    pub fn measure(ranks: &Ranks) -> Result<Option<Network>> {
        const SHORT: usize = 1;
        const LONG: usize = 1 << 20;
        if ranks.size() < 2 {
            return Ok(None);
        }
        let (short, long) = (one_way(ranks, SHORT, 200), one_way(ranks, LONG, 5));
        let bytes = ((LONG - SHORT) * WIDTH) as f64;
        let mine = vec![short, bytes / (long - short).max(1e-9)];
        let found = ranks.from_first(mine)?;
        Ok(Some(Network { latency: found[0], bandwidth: found[1] }))
    }
}

/// Returns the least seconds in which numbers travel from one of the first two ranks to the other.
fn one_way(ranks: &Ranks, numbers: usize, times: usize) -> f64 {
    const TRIES: usize = 10;
    let (sent, mut received) = (vec![1.0; numbers], vec![0.0; numbers]);
    let mut least = f64::INFINITY;
    for _ in 0..TRIES {
        let began = Instant::now();
        for _ in 0..times {
            match ranks.rank() {
                0 => {
                    ranks.exchange(&[(1, &sent[..])], Vec::new(), &mut || ());
                    ranks.exchange::<f64>(&[], vec![(1, &mut received[..])], &mut || ());
                }
                1 => {
                    ranks.exchange::<f64>(&[], vec![(0, &mut received[..])], &mut || ());
                    ranks.exchange(&[(0, &sent[..])], Vec::new(), &mut || ());
                }
                _ => {}
            }
        }
        least = least.min(began.elapsed().as_secs_f64() / (2 * times) as f64);
    }
    least
}

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
    /// Measured memory bandwidth of this machine in GB/s, over as many bytes as the largest ranks of a machine move.
    pub stream_gigabytes_per_second: f64,
    /// Predicted seconds of an iteration: all of it, and its parts on the slowest rank.
    pub seconds: f64,
    /// Seconds of the memory traffic.
    pub seconds_memory: f64,
    /// Seconds of the exchange with the neighbours.
    pub seconds_halo: f64,
    /// Seconds of the sums over all ranks.
    pub seconds_sums: f64,
    /// Predicted seconds of an iteration of one process on one machine.
    pub seconds_alone: f64,
    /// The same bandwidth over as many bytes as one process moves: smaller sets may fit a cache.
    pub stream_alone_gigabytes_per_second: f64,
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
    /// n-vectors that are read or written, in addition to those of the product.
    vectors: usize,
    sums: usize,
}

const CG: Method = Method { name: "cg", vectors: 8, sums: 2 };
/// Includes the copy of x into a complete vector.
const PAGERANK: Method = Method { name: "pagerank", vectors: 7, sums: 1 };

impl Matrix {
    /// Predicts the parts of the matrix over ranks, and the time of an iteration, with the measured memory bandwidth of this machine.
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
        let (matrix, method) = transposed.as_ref().map_or((self.csr(), CG), |matrix| (matrix, PAGERANK));
        if !symmetric && !cluster.partition.is_in_order() {
            let reason = "the matrix is not symmetric, so the prediction is that of pagerank, which divides its vertices by entries";
            return Err(Error::setting(SETTING, &cluster.partition, reason));
        }
        let together = if symmetric { unknowns_of_a_node(matrix) } else { 1 };
        let division = Division::by(&cluster.partition, (matrix, self.name()), cluster.ranks, together)?;
        predict(matrix, &method, &division, cluster)
    }
}

fn predict(matrix: &Csr, method: &Method, division: &Division, cluster: &Cluster) -> Result<RankPrediction> {
    let Cluster { per_machine, network, .. } = *cluster;
    let mut parts = division.parts(matrix);
    let of_entry = matrix.values().width() + size_of::<u32>();
    for part in &mut parts {
        let vectors = WIDTH * ((method.vectors + 2) * part.rows + 2 * (part.received + part.sent));
        part.bytes = (of_entry * part.entries + matrix.row_offsets().width() * part.rows + vectors) as u64;
    }
    let most = parts.iter().map(|part| part.bytes).max().unwrap_or(0);
    let mean = parts.iter().map(|part| part.bytes).sum::<u64>() as f64 / parts.len() as f64;
    let cpu = Cpu::new(None)?;
    let on_machine = most.saturating_mul(per_machine as u64);
    let gigabytes = stream::measure(&cpu, on_machine.min(stream::LARGEST))?;
    let of_rank = gigabytes * 1e9 / per_machine as f64;
    let (memory, halo) = (
        |part: &RankPart| part.bytes as f64 / of_rank,
        |part: &RankPart| {
            let longest = part.received.max(part.sent) * WIDTH;
            part.neighbours as f64 * network.latency + longest as f64 / network.bandwidth
        },
    );
    parts.iter_mut().for_each(|part| part.seconds = memory(part) + halo(part));
    let slowest = parts.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds)).copied().unwrap_or_default();
    let doublings = f64::from(usize::BITS - (parts.len() - 1).leading_zeros());
    let sums = method.sums as f64 * doublings * network.latency;
    let alone = Cost::of_csr(matrix, WIDTH).bytes + (method.vectors * WIDTH * matrix.rows()) as u64;
    let alone_gigabytes = stream::measure(&cpu, alone.min(stream::LARGEST))?;
    let of_largest = if method.name == CG.name { RankMemory::of_largest(&parts)? } else { None };
    Ok(RankPrediction {
        method: method.name,
        memory: of_largest,
        partition: cluster.partition.to_string(),
        balance: if mean > 0.0 { most as f64 / mean } else { 1.0 },
        ranks_per_machine: per_machine,
        network,
        stream_gigabytes_per_second: gigabytes,
        seconds: slowest.seconds + sums,
        seconds_memory: memory(&slowest),
        seconds_halo: halo(&slowest),
        seconds_sums: sums,
        seconds_alone: alone as f64 / (alone_gigabytes * 1e9),
        stream_alone_gigabytes_per_second: alone_gigabytes,
        parts,
    })
}

/// The most parts that are listed one by one.
const LISTED: usize = 8;

impl RankPrediction {
    /// Returns a line for each fact. A continuation line has no label.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
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
                "{} an iteration of {}: memory {} (at {:.1} GB/s a machine), halo {}, sums {}",
                duration(self.seconds),
                self.method,
                duration(self.seconds_memory),
                self.stream_gigabytes_per_second,
                duration(self.seconds_halo),
                duration(self.seconds_sums)
            ),
        ));
        lines.push((
            "",
            format!(
                "one process on one machine {} (at {:.1} GB/s): {}",
                duration(self.seconds_alone),
                self.stream_alone_gigabytes_per_second,
                compared(self.seconds_alone / self.seconds)
            ),
        ));
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
