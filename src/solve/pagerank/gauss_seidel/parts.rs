//! The links of a graph in the order in which Gauss-Seidel reads them: made once, for any number of solves.

use super::links_into;
use crate::error::{Error, Result};
use crate::format::{Csr, Values, partition};
use crate::parallel::{room, run_all, tabulate, zeros};
use crate::solve::pagerank::links::Links;
use std::ops::Range;
use std::sync::Arc;

/// Parts of a large graph. On the crawl cnr-2000, 8 parts take 30 % more passes than 4.
const PARTS: usize = 4;
/// Links and rows of a part at most, about. Half as many numbers as 32 bits hold leave room for
/// what fills up the fours.
const MOST_WORK: usize = 1 << 31;
/// Links up to which a graph has one part, because passes are too short to share.
const SMALL: usize = 1 << 17;
/// Most rows in a series that share one sum of links; the sum is changed in each row, so
/// rounding errors accumulate.
const SERIES: usize = 64;
/// The number of a vertex of the tail in the core.
const NONE: u32 = u32::MAX;

/// The core of a graph, cut into parts, and its tail.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The links by target that the parts were made from.
    links: Arc<Csr>,
    /// The vertices of the core, in increasing order.
    pub(super) core: Vec<u32>,
    /// The vertices of the tail. A link within the tail leads from a later vertex to an earlier one.
    pub(super) tail: Vec<u32>,
    pub(super) parts: Vec<Part>,
}

/// The links into some vertices of the core.
#[derive(Debug)]
pub(super) struct Part {
    /// The place of its first vertex in the core.
    pub start: usize,
    rows: Vec<Row>,
    /// The places of the vertices that links come from, of each row in the order of the graph. The vertices
    /// of the part have the first places, then follow those of `outside`, and the last place is of a 0. The
    /// last four of a row are filled up with the place of the 0: so a row takes one loop, whose end a
    /// processor can often predict.
    sources: Vec<u32>,
    /// Empty if each link weighs 1.
    weights: Vec<f64>,
    /// The vertices of other parts that links come from.
    outside: Vec<u32>,
}

/// A vertex of the core.
#[derive(Debug)]
pub(super) struct Row {
    /// The end of its links in `sources`, in fours; or [`REPEATS`], if it has the links of the row
    /// before, which are stored once.
    pub end: u32,
    /// The weight of the links from the vertex.
    pub out: f64,
    /// The weight of the links from the vertex to itself.
    pub own: f64,
    /// The weight of the links from the vertex to the tail.
    pub lost: f64,
}

/// The end of a row that has the links of the row before.
pub(super) const REPEATS: u32 = u32::MAX;

/// Which vertices are the core, and what their rows need.
struct Layout<'a> {
    links: &'a Links,
    core: Vec<u32>,
    tail: Vec<u32>,
    /// The number of each vertex in the core, or [`NONE`].
    numbers: Vec<u32>,
    /// The weight of the links from each vertex to itself.
    own: Vec<f64>,
    /// The weight of the links from each vertex to the tail.
    lost: Vec<f64>,
}

impl Parts {
    /// Divides the vertices into core and tail, and cuts the core into parts.
    pub(crate) fn new(links: &Links) -> Result<Parts> {
        let into = links.incoming();
        if links.vertices() != into.rows() {
            let reason = "Gauss-Seidel runs in one process, and the links are those of several";
            return Err(Error::setting("method", "gauss-seidel", reason));
        }
        let layout = Layout::new(links)?;
        let work = into.nnz() + partition::ROW * into.rows();
        let count = if into.nnz() <= SMALL { 1 } else { PARTS.max(work.div_ceil(MOST_WORK)) };
        let starts: Vec<usize> = (partition::by_entries(into, count, 1).into_iter())
            .map(|start| layout.core.partition_point(|&i| (i as usize) < start))
            .collect();
        let ranges = starts.windows(2).map(|ends| ends[0]..ends[1]).collect();
        let parts = run_all(ranges, |range| layout.part(range));
        let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(Parts { links: Arc::clone(into), core: layout.core, tail: layout.tail, parts })
    }

    /// Returns whether the parts were made from these links.
    pub(super) fn are_of(&self, links: &Links) -> bool {
        Arc::ptr_eq(&self.links, links.incoming())
    }

    /// Returns the bytes of the core: its links, and the numbers of each vertex beside them.
    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes() as u64).sum()
    }

    /// Returns the bytes of the links into the tail.
    pub(super) fn bytes_of_tail(&self) -> u64 {
        let links: usize = self.tail.iter().map(|&i| self.links.row_range(i as usize).len()).sum();
        let weight = if matches!(self.links.values(), Values::Ones) { 0 } else { size_of::<f64>() };
        (links * (size_of::<u32>() + weight) + self.tail.len() * size_of::<u32>()) as u64
    }
}

impl Layout<'_> {
    fn new(links: &Links) -> Result<Layout<'_>> {
        let (into, out) = (links.incoming(), links.out());
        let n = into.rows();
        let own =
            tabulate(n, |i| into.row(i).filter(|(j, _)| *j == i).map(|(_, weight)| weight).sum::<f64>())?;
        // The number of links from each vertex to others that are not known to be of the tail.
        let mut left: Vec<u64> = match into.values() {
            Values::Ones => tabulate(n, |i| (out[i] - own[i]) as u64)?,
            _ => zeros(n)?,
        };
        if !matches!(into.values(), Values::Ones) {
            for i in 0..n {
                links_into(into, i).filter(|(j, _)| *j != i).for_each(|(j, _)| left[j] += 1);
            }
        }
        let mut lost = zeros(n)?;
        let mut tail: Vec<u32> = room(n)?;
        tail.extend((0..n).filter(|&i| left[i] == 0).map(|i| i as u32));
        let mut next = 0;
        while let Some(&vertex) = tail.get(next) {
            next += 1;
            let i = vertex as usize;
            for (j, weight) in links_into(into, i).filter(|(j, _)| *j != i) {
                lost[j] += weight;
                left[j] -= 1;
                if left[j] == 0 {
                    tail.push(j as u32);
                }
            }
        }
        let mut core = room(n - tail.len())?;
        let mut numbers = room(n)?;
        for (i, &left) in left.iter().enumerate() {
            numbers.push(if left == 0 { NONE } else { core.len() as u32 });
            core.extend((left > 0).then_some(i as u32));
        }
        Ok(Layout { links, core, tail, numbers, own, lost })
    }

    /// Returns the part of a range of the core.
    fn part(&self, range: Range<usize>) -> Result<Part> {
        let (links, out) = (self.links.incoming(), self.links.out());
        let weighted = !matches!(links.values(), Values::Ones);
        let length = |i: &u32| links.row_range(*i as usize).len().next_multiple_of(4);
        let most = self.core[range.clone()].iter().map(length).sum();
        let mut rows = room::<Row>(range.len())?;
        let (mut sources, mut weights) = (room(most)?, room(if weighted { most } else { 0 })?);
        let (outside, places) = self.outside(links, &range)?;
        let zero = (range.len() + outside.len()) as u32;
        let (mut before, mut series) = (0..0, 0);
        for &i in &self.core[range.clone()] {
            let i = i as usize;
            let begin = sources.len();
            for (j, weight) in links_into(links, i) {
                let number = self.numbers[j] as usize;
                let inside = range.contains(&number);
                sources.push(if inside { (number - range.start) as u32 } else { places[number] });
                weights.extend(weighted.then_some(weight));
            }
            let end = begin + (sources.len() - begin).next_multiple_of(4);
            sources.resize(end, zero);
            weights.resize(if weighted { end } else { 0 }, 0.0);
            let repeats = series > 0
                && series < SERIES
                && sources[before.clone()] == sources[begin..end]
                && (!weighted || weights[before.clone()] == weights[begin..end]);
            if repeats {
                sources.truncate(begin);
                weights.truncate(begin);
                series += 1;
            } else {
                (before, series) = (begin..end, 1);
            }
            rows.push(Row {
                end: if repeats { REPEATS } else { (end / 4) as u32 },
                out: out[i],
                own: self.own[i],
                lost: self.lost[i],
            });
        }
        // The safety of reading without checks rests on this.
        assert!(sources.iter().all(|&place| place <= zero), "a link has a place outside of its part");
        Ok(Part { start: range.start, rows, sources, weights, outside })
    }

    /// Returns the vertices that have links into a range of the core from outside of it, and the place of
    /// each of them in the part, by its number.
    fn outside(&self, links: &Csr, range: &Range<usize>) -> Result<(Vec<u32>, Vec<u32>)> {
        let mut places = zeros::<u32>(self.core.len())?;
        for &i in &self.core[range.clone()] {
            for (j, _) in links_into(links, i as usize) {
                places[self.numbers[j] as usize] = 1;
            }
        }
        places[range.clone()].fill(0);
        let mut outside = room(places.iter().filter(|needed| **needed == 1).count())?;
        for (number, place) in places.iter_mut().enumerate().filter(|(_, needed)| **needed == 1) {
            *place = (range.len() + outside.len()) as u32;
            outside.push(number as u32);
        }
        Ok((outside, places))
    }
}

impl Part {
    fn bytes(&self) -> usize {
        size_of_val(&self.rows[..])
            + size_of_val(&self.sources[..])
            + size_of_val(&self.weights[..])
            + size_of_val(&self.outside[..])
    }

    /// Returns the vertices of the part.
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the vertices outside that links come from, as numbers in the core.
    pub(crate) fn outside(&self) -> &[u32] {
        &self.outside
    }

    /// Returns the number of places.
    pub(crate) fn places(&self) -> usize {
        self.rows.len() + self.outside.len() + 1
    }

    /// Returns the sum of c over some links, in four partial sums, because a single one would wait
    /// for each of its additions.
    ///
    /// # Safety
    /// `c` must have as many entries as the part has places.
    #[inline(always)]
    pub(crate) unsafe fn sum<const WEIGHTED: bool>(&self, c: &[f64], fours: Range<usize>) -> f64 {
        debug_assert_eq!(c.len(), self.places());
        // SAFETY: the caller guarantees the length of `c`, and `Layout::part` has checked that all
        // sources are places of the part.
        let at = |place: u32| unsafe { *c.get_unchecked(place as usize) };
        let mut sums = [0.0; 4];
        let (sources, _) = self.sources.as_chunks::<4>();
        let (weights, _) = self.weights.as_chunks::<4>();
        if WEIGHTED {
            for (sources, weights) in sources[fours.clone()].iter().zip(&weights[fours]) {
                (0..4).for_each(|lane| sums[lane] += weights[lane] * at(sources[lane]));
            }
        } else {
            for sources in &sources[fours] {
                (0..4).for_each(|lane| sums[lane] += at(sources[lane]));
            }
        }
        (sums[0] + sums[2]) + (sums[1] + sums[3])
    }
}
