//! The schedule of a triangular solve: which thread solves which unknowns, and in which order.
//!
//! An unknown can be solved after the unknowns that its row depends on. Units, the unknowns of one block row,
//! are grouped into tasks, and every thread works through a strand of tasks in order; before a task it waits
//! until other threads have done enough tasks. Three schedules are compared by a simple cost model of the
//! machine, and the fastest is used:
//!
//! - *serial*: one thread, in the order of the rows.
//! - *lines*: for triangles in which most units depend on the previous one, as along the lines of a grid.
//!   Every line is cut into as many pieces as there are threads, and each thread has one piece of every line:
//!   a pipeline in which only the ends of pieces meet, and all memory is read in order.
//! - *levels*: units at the same distance from the start are solved at the same time, divided among the
//!   threads; consecutive small levels are left to one thread.
//!
//! The schedule changes when an unknown is solved, never how: all schedules give the same bits.

use crate::error::Result;
use crate::parallel::room;
use std::ops::Range;

/// The cost of a unit without its off-diagonal blocks, and of a wait for another thread, in the
/// time of moving one byte.
const UNIT: f64 = 16.0;
const WAIT: f64 = 1500.0;
/// Least work of a task: below it a signal to other threads costs too much.
const SMALL: f64 = 6000.0;
/// Upper bound of the bytes for each unit while schedules are made: three schedules, each with its units,
/// their threads and tasks, and the depths for the levels.
const BYTES: usize = 64;
/// A schedule replaces a simpler one only if its time is below this share.
const WORTH: f64 = 0.9;

/// The units that each unit depends on, strictly below the diagonal.
pub(super) struct Dependencies<'a> {
    /// The start of each unit's dependencies; one more than there are units.
    pub offsets: &'a [usize],
    pub units: &'a [u32],
}

impl Dependencies<'_> {
    pub(crate) fn of(&self, unit: usize) -> &[u32] {
        &self.units[self.offsets[unit]..self.offsets[unit + 1]]
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether a unit depends on the unit before it.
    fn chained(&self, unit: usize) -> bool {
        unit > 0 && self.of(unit).last() == Some(&(unit as u32 - 1))
    }
}

/// The tasks of one thread.
#[derive(Clone, Default)]
pub(super) struct Strand {
    pub units: Vec<u32>,
    /// The end of each task in `units`.
    ends: Vec<usize>,
}

impl Strand {
    pub(crate) fn tasks(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn task(&self, number: usize) -> &[u32] {
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

/// A strand for every thread, and the thread and task of each unit.
pub(super) struct Schedule {
    pub name: &'static str,
    pub strands: Vec<Strand>,
    thread_of: Vec<u16>,
    task_of: Vec<u32>,
}

/// A wait until a thread has done this many tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    pub thread: u32,
    pub tasks: u32,
}

/// The direction of a solve.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    /// The lower triangle, first row first.
    Forward,
    /// The transpose of the lower triangle, last row first.
    Backward,
}

impl Schedule {
    /// Returns the fastest schedule for at most `threads` threads; a block has `block` bytes.
    pub(crate) fn new(dependencies: &Dependencies<'_>, threads: usize, block: usize) -> Result<Schedule> {
        let model = Model { dependencies, block: block as f64 };
        let (n, threads) = (dependencies.len(), threads.min(usize::from(u16::MAX)));
        // One early check for memory, because the schedules allocate many small arrays.
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

    /// Appends the waits that a task of a thread needs, without those that earlier waits already cover:
    /// `waited_for` has, for every thread, the number of tasks that this thread has waited for.
    /// `dependencies` are those of the direction.
    pub(crate) fn waits(
        &self,
        (thread, task): (usize, usize),
        direction: Direction,
        dependencies: &Dependencies<'_>,
        waited_for: &mut [u32],
        into: &mut Vec<Wait>,
    ) {
        let first = into.len();
        for &unit in self.strands[thread].task(task) {
            for &other in dependencies.of(unit as usize) {
                let owner = usize::from(self.thread_of[other as usize]);
                if owner == thread {
                    continue;
                }
                let number = self.task_of[other as usize];
                let tasks = match direction {
                    Direction::Forward => number + 1,
                    Direction::Backward => 2 * self.strands[owner].tasks() as u32 - number,
                };
                if tasks > waited_for[owner] {
                    waited_for[owner] = tasks;
                    match into[first..].iter_mut().find(|wait| wait.thread == owner as u32) {
                        Some(wait) => wait.tasks = tasks,
                        None => into.push(Wait { thread: owner as u32, tasks }),
                    }
                }
            }
        }
    }
}

/// The cost model of the machine.
struct Model<'a> {
    dependencies: &'a Dependencies<'a>,
    block: f64,
}

impl Model<'_> {
    fn work(&self, units: Range<usize>) -> f64 {
        let blocks = self.dependencies.offsets[units.end] - self.dependencies.offsets[units.start];
        units.len() as f64 * (UNIT + self.block) + blocks as f64 * self.block
    }

    fn work_of(&self, units: &[u32]) -> f64 {
        units.iter().map(|&unit| self.work(unit as usize..unit as usize + 1)).sum()
    }

    /// Returns when the last thread is done; none if threads would wait for each other forever.
    fn time(&self, schedule: &Schedule) -> Option<f64> {
        let threads = schedule.strands.len();
        let mut done: Vec<Vec<f64>> =
            schedule.strands.iter().map(|s| Vec::with_capacity(s.tasks())).collect();
        let mut waited_for = vec![vec![0; threads]; threads];
        let mut waits: Vec<Vec<Wait>> = vec![Vec::new(); threads];
        loop {
            let mut moved = false;
            for thread in 0..threads {
                let strand = &schedule.strands[thread];
                while done[thread].len() < strand.tasks() {
                    let position = (thread, done[thread].len());
                    if waits[thread].is_empty() {
                        let (waited_for, waits) = (&mut waited_for[thread], &mut waits[thread]);
                        schedule.waits(position, Direction::Forward, self.dependencies, waited_for, waits);
                    }
                    let ready = |wait: &Wait| done[wait.thread as usize].get(wait.tasks as usize - 1);
                    let Some(ready) = waits[thread].iter().map(ready).collect::<Option<Vec<&f64>>>() else {
                        break;
                    };
                    let dependencies_done =
                        ready.into_iter().fold(0.0_f64, |time, &other| time.max(other + WAIT));
                    let start = done[thread].last().copied().unwrap_or(0.0).max(dependencies_done);
                    done[thread].push(start + self.work_of(strand.task(position.1)));
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

/// Gives every thread a piece of every line. Lines are merged into one task until the task is worth a signal.
fn lines(model: &Model<'_>, threads: usize) -> Schedule {
    let n = model.dependencies.len();
    let mut strands = vec![Strand::default(); threads];
    let (mut group, mut start) = (0, 0);
    for end in 1..=n {
        if end < n && model.dependencies.chained(end) {
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

/// Returns the depth of each unit: the length of the longest chain of dependencies before it.
fn depths(dependencies: &Dependencies<'_>) -> Vec<u32> {
    let mut depths = vec![0; dependencies.len()];
    for unit in 0..dependencies.len() {
        depths[unit] =
            dependencies.of(unit).iter().map(|&other| depths[other as usize] + 1).max().unwrap_or(0);
    }
    depths
}

/// Returns the units sorted by depth, in order within a depth, and the end of each depth.
fn by_depth(dependencies: &Dependencies<'_>) -> (Vec<u32>, Vec<usize>) {
    let depths = depths(dependencies);
    let levels = depths.iter().max().map_or(0, |&deepest| deepest as usize + 1);
    let mut ends = vec![0; levels + 1];
    depths.iter().for_each(|&depth| ends[depth as usize + 1] += 1);
    (0..levels).for_each(|level| ends[level + 1] += ends[level]);
    let mut sorted = vec![0; dependencies.len()];
    for (unit, &depth) in depths.iter().enumerate() {
        sorted[ends[depth as usize]] = unit as u32;
        ends[depth as usize] += 1;
    }
    ends.pop();
    (sorted, ends)
}

/// Divides every level among the threads.
fn levels(model: &Model<'_>, threads: usize) -> Schedule {
    let (sorted, ends) = by_depth(model.dependencies);
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

    /// Returns the dependencies of a grid with one unit for each point; `before` lists the offsets
    /// of a point's dependencies.
    fn grid(sizes: [usize; 3], before: &[[isize; 3]]) -> (Vec<usize>, Vec<u32>) {
        let [x, y, z] = sizes;
        let (mut offsets, mut units) = (vec![0], Vec::new());
        for at in 0..x * y * z {
            let position = [at % x, at / x % y, at / (x * y)];
            let mut row: Vec<u32> = Vec::new();
            for step in before {
                let there: Vec<_> = (0..3).map(|d| position[d].checked_add_signed(step[d])).collect();
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

    /// Runs the strands in turns, the favourite first as far as its waits allow; asserts that no unknown is
    /// used before it is solved.
    fn assert_waits_suffice(
        schedule: &Schedule,
        below: &Dependencies<'_>,
        above: &Dependencies<'_>,
        favourite: usize,
    ) {
        let threads = schedule.strands.len();
        let mut done = vec![0_usize; threads];
        let mut waited_for = vec![vec![0; threads]; threads];
        let mut pending: Vec<Option<Vec<Wait>>> = vec![None; threads];
        let mut solved = [vec![false; below.len()], vec![false; below.len()]];
        loop {
            let step = |thread: usize| {
                let tasks = schedule.strands[thread].tasks();
                if done[thread] == 2 * tasks {
                    return false;
                }
                let forward = done[thread] < tasks;
                let (direction, dependencies, task) = match forward {
                    true => (Direction::Forward, below, done[thread]),
                    false => (Direction::Backward, above, 2 * tasks - 1 - done[thread]),
                };
                let waits = pending[thread].get_or_insert_with(|| {
                    let mut waits = Vec::new();
                    schedule.waits(
                        (thread, task),
                        direction,
                        dependencies,
                        &mut waited_for[thread],
                        &mut waits,
                    );
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
                    assert!(dependencies.of(unit as usize).iter().all(|&other| solved[other as usize]));
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
    fn grids_get_their_fastest_schedule_and_no_unknown_is_used_before_it_is_solved() {
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
            let below = Dependencies { offsets: &offsets, units: &units };
            let (offsets, units) = reversed(&offsets, &units);
            let above = Dependencies { offsets: &offsets, units: &units };
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
