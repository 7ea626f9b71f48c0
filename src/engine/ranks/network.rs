//! The network between ranks: its latency and its bandwidth.

use crate::device::Ranks;
use crate::error::Result;
use serde::Serialize;
use std::time::Instant;

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
    pub(crate) fn measure(ranks: &Ranks) -> Result<Option<Network>> {
        const SHORT: usize = 1;
        const LONG: usize = 1 << 20;
        if ranks.size() < 2 {
            return Ok(None);
        }
        let (short, long) = (one_way(ranks, SHORT, 200), one_way(ranks, LONG, 5));
        let bytes = ((LONG - SHORT) * size_of::<f64>()) as f64;
        let mine = vec![short, bytes / (long - short).max(1e-9)];
        let found = ranks.list_of_first(mine)?;
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
