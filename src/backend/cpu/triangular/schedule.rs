//! Which thread solves which unknowns of a triangle, and in which order.
//!
//! An unknown can be solved when those that its row names are. Units, the unknowns of one block row, are put into
//! tasks, and every thread works through a strand of tasks in order; before a task it waits until other threads have
//! come far enough. Three ways to cut are tried on paper, by a small model of the machine, and the fastest is taken:
//!
//! - *serial*: one thread, in the order of the rows.
//! - *lines*: where most units need the one before, as along the lines of a grid, every line is cut into as many pieces
//!   as there are threads, and each thread has one piece of every line: a pipeline in which only the ends of pieces
//!   meet, and all memory is read in order.
//! - *levels*: the units that are as far from the start are solved at the same time, cut among the threads; small
//!   levels that follow each other are left to one thread.
//!
//! The order changes when an unknown is solved, never how: all schedules give the same bits.

use crate::error::Result;
use crate::parallel::room;
use std::ops::Range;

/// What a unit costs beside its blocks, and a wait for another thread, in the time of moving one byte.
const UNIT: f64 = 16.0;
const WAIT: f64 = 1500.0;
/// Work below which a task is not worth a signal.
const SMALL: f64 = 6000.0;
/// The most bytes for each unit while schedules are made: three of them, of which each has its units, their threads and
/// tasks, and the depths by which one is cut.
const BYTES: usize = 64;
/// A schedule must be this much faster than a simpler one to be worth it.
const WORTH: f64 = 0.9;

/// Which units stand in the rows of which, strictly below the diagonal.
pub(super) struct Needs<'a> {
    /// Where the needs of each unit begin; one more than there are units.
    pub offsets: &'a [usize],
    pub units: &'a [u32],
}

impl Needs<'_> {
    pub fn of(&self, unit: usize) -> &[u32] {
        &self.units[self.offsets[unit]..self.offsets[unit + 1]]
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether a unit needs the one before it.
    fn chained(&self, unit: usize) -> bool {
        unit > 0 && self.of(unit).last() == Some(&(unit as u32 - 1))
    }
}

/// The tasks of one thread.
#[derive(Clone, Default)]
pub(super) struct Strand {
    pub units: Vec<u32>,
    /// Where each task ends in `units`.
    ends: Vec<usize>,
}

impl Strand {
    pub fn tasks(&self) -> usize {
        self.ends.len()
    }

    pub fn task(&self, number: usize) -> &[u32] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.units[start..self.ends[number]]
    }

    /// Ends a task, unless it is empty.
    fn end(&mut self) {
        if self.ends.last().copied().unwrap_or(0) < self.units.len() {
            self.ends.push(self.units.len());
        }
    }
}

/// A strand for every thread, and where each unit stands in them.
pub(super) struct Schedule {
    pub name: &'static str,
    pub strands: Vec<Strand>,
    thread_of: Vec<u16>,
    task_of: Vec<u32>,
}

/// So many tasks of a thread must be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    pub thread: u32,
    pub tasks: u32,
}

/// The way through a triangle.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    /// The lower one, first row first.
    Forward,
    /// Its transpose, after it, last row first.
    Backward,
}

impl Schedule {
    /// The best one for so many threads; a block weighs so many bytes.
    pub fn new(needs: &Needs<'_>, threads: usize, block: usize) -> Result<Schedule> {
        let model = Model { needs, block: block as f64 };
        let (n, threads) = (needs.len(), threads.min(usize::from(u16::MAX)));
        // Asked for at once, as it is taken here and there.
        room::<[u8; BYTES]>(n).map(drop)?;
        let all = model.work(0..n);
        let serial =
            || Schedule::of("serial", n, vec![Strand { units: (0..n as u32).collect(), ends: vec![n] }]);
        if threads == 1 || all < 2.0 * SMALL {
            return Ok(serial());
        }
        let ideal = all / threads as f64;
        let mut best = (WORTH * all, None);
        for cut in [lines, levels] {
            if best.0 < ideal / WORTH {
                break;
            }
            let schedule = cut(&model, threads);
            match model.time(&schedule) {
                Some(time) if time < best.0 => best = (WORTH * time, Some(schedule)),
                _ => (),
            }
        }
        Ok(best.1.unwrap_or_else(serial))
    }

    fn of(name: &'static str, units: usize, strands: Vec<Strand>) -> Schedule {
        let (mut thread_of, mut task_of) = (vec![0; units], vec![0; units]);
        for (thread, strand) in strands.iter().enumerate() {
            for task in 0..strand.tasks() {
                for &unit in strand.task(task) {
                    thread_of[unit as usize] = thread as u16;
                    task_of[unit as usize] = task as u32;
                }
            }
        }
        Schedule { name, strands, thread_of, task_of }
    }

    /// What a task of a thread must wait for, as far as the thread does not know it: `known` has the tasks of every
    /// thread that it has waited for. `needs` are those of the direction.
    pub fn waits(
        &self,
        (thread, task): (usize, usize),
        direction: Direction,
        needs: &Needs<'_>,
        known: &mut [u32],
        into: &mut Vec<Wait>,
    ) {
        let first = into.len();
        for &unit in self.strands[thread].task(task) {
            for &other in needs.of(unit as usize) {
                let owner = usize::from(self.thread_of[other as usize]);
                if owner == thread {
                    continue;
                }
                let number = self.task_of[other as usize];
                let tasks = match direction {
                    Direction::Forward => number + 1,
                    Direction::Backward => 2 * self.strands[owner].tasks() as u32 - number,
                };
                if tasks > known[owner] {
                    known[owner] = tasks;
                    match into[first..].iter_mut().find(|wait| wait.thread == owner as u32) {
                        Some(wait) => wait.tasks = tasks,
                        None => into.push(Wait { thread: owner as u32, tasks }),
                    }
                }
            }
        }
    }
}

/// The machine on paper.
struct Model<'a> {
    needs: &'a Needs<'a>,
    block: f64,
}

impl Model<'_> {
    fn work(&self, units: Range<usize>) -> f64 {
        let blocks = self.needs.offsets[units.end] - self.needs.offsets[units.start];
        units.len() as f64 * (UNIT + self.block) + blocks as f64 * self.block
    }

    fn work_of(&self, units: &[u32]) -> f64 {
        units.iter().map(|&unit| self.work(unit as usize..unit as usize + 1)).sum()
    }

    /// When the last thread is done; none if they would wait for each other.
    fn time(&self, schedule: &Schedule) -> Option<f64> {
        let threads = schedule.strands.len();
        let mut done: Vec<Vec<f64>> =
            schedule.strands.iter().map(|s| Vec::with_capacity(s.tasks())).collect();
        let mut known = vec![vec![0; threads]; threads];
        let mut waits: Vec<Vec<Wait>> = vec![Vec::new(); threads];
        loop {
            let mut moved = false;
            for thread in 0..threads {
                let strand = &schedule.strands[thread];
                while done[thread].len() < strand.tasks() {
                    let place = (thread, done[thread].len());
                    if waits[thread].is_empty() {
                        let (known, waits) = (&mut known[thread], &mut waits[thread]);
                        schedule.waits(place, Direction::Forward, self.needs, known, waits);
                    }
                    let ready = |wait: &Wait| done[wait.thread as usize].get(wait.tasks as usize - 1);
                    let Some(ready) = waits[thread].iter().map(ready).collect::<Option<Vec<&f64>>>() else {
                        break;
                    };
                    let others = ready.into_iter().fold(0.0_f64, |time, &other| time.max(other + WAIT));
                    let start = done[thread].last().copied().unwrap_or(0.0).max(others);
                    done[thread].push(start + self.work_of(strand.task(place.1)));
                    waits[thread].clear();
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let complete = done.iter().zip(&schedule.strands).all(|(done, strand)| done.len() == strand.tasks());
        complete.then(|| done.iter().filter_map(|done| done.last()).fold(0.0, |a: f64, &b| a.max(b)))
    }
}

/// A piece of every line for every thread. Lines are taken together until a task is worth a signal.
fn lines(model: &Model<'_>, threads: usize) -> Schedule {
    let n = model.needs.len();
    let mut strands = vec![Strand::default(); threads];
    let (mut group, mut start) = (0, 0);
    for end in 1..=n {
        if end < n && model.needs.chained(end) {
            continue;
        }
        let line = start..end;
        for (piece, strand) in strands.iter_mut().enumerate() {
            let at = |piece: usize| (line.start + line.len() * piece / threads) as u32;
            strand.units.extend(at(piece)..at(piece + 1));
        }
        start = end;
        if end == n || model.work(group..end) > threads as f64 * SMALL {
            strands.iter_mut().for_each(Strand::end);
            group = end;
        }
    }
    Schedule::of("lines", n, strands)
}

/// How many steps each unit is from one that needs nothing.
fn depths(needs: &Needs<'_>) -> Vec<u32> {
    let mut depths = vec![0; needs.len()];
    for unit in 0..needs.len() {
        depths[unit] = needs.of(unit).iter().map(|&other| depths[other as usize] + 1).max().unwrap_or(0);
    }
    depths
}

/// Units sorted by depth, in order where it is the same; and where each depth ends.
fn by_depth(needs: &Needs<'_>) -> (Vec<u32>, Vec<usize>) {
    let depths = depths(needs);
    let levels = depths.iter().max().map_or(0, |&deepest| deepest as usize + 1);
    let mut ends = vec![0; levels + 1];
    depths.iter().for_each(|&depth| ends[depth as usize + 1] += 1);
    (0..levels).for_each(|level| ends[level + 1] += ends[level]);
    let mut sorted = vec![0; needs.len()];
    for (unit, &depth) in depths.iter().enumerate() {
        sorted[ends[depth as usize]] = unit as u32;
        ends[depth as usize] += 1;
    }
    ends.pop();
    (sorted, ends)
}

/// Every level cut among the threads.
fn levels(model: &Model<'_>, threads: usize) -> Schedule {
    let (sorted, ends) = by_depth(model.needs);
    let mut strands = vec![Strand::default(); threads];
    let (mut start, mut after_small) = (0, false);
    for end in ends {
        let level = &sorted[start..end];
        start = end;
        let work = model.work_of(level);
        let parts = ((work / SMALL) as usize).clamp(1, threads);
        if after_small && parts == 1 {
            strands[0].ends.pop();
        }
        after_small = parts == 1;
        let (mut part, mut before) = (0, 0.0);
        for &unit in level {
            if before >= work * (part + 1) as f64 / parts as f64 {
                part = (part + 1).min(parts - 1);
            }
            strands[part].units.push(unit);
            before += model.work(unit as usize..unit as usize + 1);
        }
        strands.iter_mut().for_each(Strand::end);
    }
    Schedule::of("levels", sorted.len(), strands)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The needs of a grid, one unit a point, with these neighbours before each.
    fn grid(sizes: [usize; 3], before: &[[isize; 3]]) -> (Vec<usize>, Vec<u32>) {
        let [x, y, z] = sizes;
        let (mut offsets, mut units) = (vec![0], Vec::new());
        for at in 0..x * y * z {
            let place = [at % x, at / x % y, at / (x * y)];
            let mut row: Vec<u32> = Vec::new();
            for step in before {
                let there: Vec<_> = (0..3).map(|d| place[d].checked_add_signed(step[d])).collect();
                if let [Some(i), Some(j), Some(k)] = there[..]
                    && i < x
                    && j < y
                    && k < z
                {
                    row.push((i + x * (j + y * k)) as u32);
                }
            }
            row.sort_unstable();
            units.extend(row);
            offsets.push(units.len());
        }
        (offsets, units)
    }

    fn reversed(offsets: &[usize], units: &[u32]) -> (Vec<usize>, Vec<u32>) {
        let n = offsets.len() - 1;
        let mut rows = vec![Vec::new(); n];
        for unit in 0..n {
            units[offsets[unit]..offsets[unit + 1]].iter().for_each(|&o| rows[o as usize].push(unit as u32));
        }
        let ends = rows.iter().scan(0, |end, row| {
            *end += row.len();
            Some(*end)
        });
        (std::iter::once(0).chain(ends).collect(), rows.concat())
    }

    /// Runs the strands in turns, one of them as far ahead as its waits let it; nothing may be used before it is there.
    fn assert_waits_suffice(schedule: &Schedule, below: &Needs<'_>, above: &Needs<'_>, favourite: usize) {
        let threads = schedule.strands.len();
        let mut done = vec![0_usize; threads];
        let mut known = vec![vec![0; threads]; threads];
        let mut pending: Vec<Option<Vec<Wait>>> = vec![None; threads];
        let mut solved = [vec![false; below.len()], vec![false; below.len()]];
        loop {
            let step = |thread: usize| {
                let tasks = schedule.strands[thread].tasks();
                if done[thread] == 2 * tasks {
                    return false;
                }
                let forward = done[thread] < tasks;
                let (direction, needs, task) = match forward {
                    true => (Direction::Forward, below, done[thread]),
                    false => (Direction::Backward, above, 2 * tasks - 1 - done[thread]),
                };
                let waits = pending[thread].get_or_insert_with(|| {
                    let mut waits = Vec::new();
                    schedule.waits((thread, task), direction, needs, &mut known[thread], &mut waits);
                    waits
                });
                if waits.iter().any(|wait| done[wait.thread as usize] < wait.tasks as usize) {
                    return false;
                }
                pending[thread] = None;
                let mut units = schedule.strands[thread].task(task).to_vec();
                if !forward {
                    units.reverse();
                }
                for unit in units {
                    let solved = &mut solved[usize::from(!forward)];
                    assert!(needs.of(unit as usize).iter().all(|&other| solved[other as usize]));
                    assert!(!std::mem::replace(&mut solved[unit as usize], true));
                }
                done[thread] += 1;
                true
            };
            if !(favourite..favourite + threads).map(|t| t % threads).any(step) {
                break;
            }
        }
        assert!(solved.iter().flatten().all(|&solved| solved), "{} ends", schedule.name);
    }

    #[test]
    fn grids_are_cut_as_suits_them_and_nothing_is_used_before_it_is_solved() {
        let star = [[-1, 0, 0], [0, -1, 0], [0, 0, -1]];
        let mut cube = Vec::new();
        for (k, j) in [(-1, -1), (-1, 0), (-1, 1), (0, -1)] {
            cube.extend([-1, 0, 1].map(|i| [i, j, k]));
        }
        cube.push([-1, 0, 0]);
        type Grid<'a> = (&'a str, [usize; 3], &'a [[isize; 3]]);
        let cases: [Grid<'_>; 5] = [
            ("lines", [300, 200, 1], &star),
            ("lines", [200, 15, 16], &star),
            ("levels", [30, 30, 30], &cube),
            ("levels", [1, 1, 9000], &[]),
            ("serial", [20_000, 1, 1], &star),
        ];
        for (name, sizes, before) in cases {
            let (offsets, units) = grid(sizes, before);
            let below = Needs { offsets: &offsets, units: &units };
            let (offsets, units) = reversed(&offsets, &units);
            let above = Needs { offsets: &offsets, units: &units };
            for threads in 1..5 {
                let schedule = Schedule::new(&below, threads, 12).unwrap();
                if threads == 2 {
                    assert_eq!(schedule.name, name, "{sizes:?}");
                }
                for favourite in 0..schedule.strands.len() {
                    assert_waits_suffice(&schedule, &below, &above, favourite);
                }
            }
        }
    }
}
