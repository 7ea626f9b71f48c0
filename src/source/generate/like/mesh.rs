//! Stiffness matrices of bodies made of finite elements, with irregularities of real models.
//!
//! A box of cells, each filled with the same elements. The stiffness of a cell is a random factor from 1
//! to 10. Each node has three unknowns, in dense blocks of 3x3. The side y = 0 lies on springs. A few extra
//! nodes outside the box are tied by springs to many or few nodes of the box, like a bearing or a mass that
//! is fastened to a body. Their rows are much longer, or shorter, than those of the elements. Nodes are
//! numbered in displaced runs of neighbours (see `displaced_order`). The numbering decides how many entries
//! of a row are in the lower triangle; a limit on that moves runs with long rows to lower numbers.
//!
//! Every term of the energy is a square and the springs allow no rigid motion, so the matrix is
//! symmetric positive definite. The two halves are equal to the last bit, because each sum adds the same
//! terms in the same order.

use super::numbering::{displaced_order, displaced_runs, limited_order};
use super::{Element, Wanted};
use crate::error::Result;
use crate::format::Csr;
use crate::parallel::zeros;
use crate::source::generate::assemble::{Shape, pattern, valued};
use crate::source::generate::random::Random;

/// The stiffness of the softest cell; it sets the order of magnitude of all values.
const STIFFNESS: f64 = 1e6;
/// The stiffness of a tie: positive definite, all directions coupled.
const TIE: [[f64; 3]; 3] = [[1.25, 0.25, 0.25], [0.25, 1.25, 0.25], [0.25, 0.25, 1.25]];
/// Seed that keeps the random numbers of numbering apart from those of cells.
const NUMBERS: u64 = 0x6e75_6d62_6572;

/// The description of a body at full size.
pub(super) struct Body {
    pub(super) elements: Vec<Element>,
    /// Steps between nodes along each side of a cell.
    pub(super) order: [usize; 3],
    pub(super) cells: [usize; 3],
    /// Extra nodes outside the box.
    pub(super) tied: usize,
    /// Nodes in the longest and in the shortest row of an extra node, itself included.
    pub(super) longest: usize,
    pub(super) shortest: usize,
    /// Number of nodes, the last ones of the side y = 0, that cannot move along y and have no unknown for it.
    pub(super) removed: usize,
    /// Parameters of the numbering: see `displaced_order`.
    pub(super) stretch: usize,
    pub(super) stray: f64,
    /// The wanted length of the longest row of the lower triangle, if the numbering is to limit
    /// it: see `limited_order`.
    pub(super) longest_stored: Option<u32>,
}

/// A body of its final size, with numbered nodes.
struct Mesh {
    body: Body,
    seed: u64,
    /// Nodes of the box along each side, and in total; the extra nodes follow after them.
    points: [usize; 3],
    box_nodes: usize,
    /// For every offset within a cell: the elements that have a node there, and the index of
    /// that node in the element.
    elements_at: Vec<Vec<(usize, usize)>>,
    /// Nodes in the order of their numbers, and the number of each node.
    order: Vec<u32>,
    numbers: Vec<u32>,
    /// The first row of each node number; the last entry is the number of rows.
    first_rows: Vec<u32>,
}

/// A node in a row: the node's first column and the values of its columns.
struct Neighbour {
    first: u32,
    unknowns: &'static [usize],
    values: [f64; 3],
}

impl Body {
    pub(super) fn assemble(self, wanted: Wanted) -> Result<Csr> {
        let mesh = Mesh::new(self, wanted)?;
        let n = mesh.first_rows[mesh.order.len()] as usize;
        let blocks = pattern(
            Shape { rows: n, cols: n, entries: 0 },
            |row| mesh.row(row).iter().map(|near| near.unknowns.len()).sum(),
            |row, columns| {
                let near = mesh.row(row);
                let all = near.iter().flat_map(|near| near.first..near.first + near.unknowns.len() as u32);
                columns.iter_mut().zip(all).for_each(|(slot, column)| *slot = column);
            },
        )?;
        valued(&blocks, |row, _, values| {
            let near = mesh.row(row);
            let all = near.iter().flat_map(|near| near.unknowns.iter().map(|&along| near.values[along]));
            values.iter_mut().zip(all).for_each(|(slot, value)| *slot = value);
        })
    }

    /// Shrinks the box to about the wanted share of its nodes.
    fn shrink(&mut self, wanted: Wanted) {
        if wanted.scale == 1.0 {
            return;
        }
        let count =
            |cells: &[usize; 3]| -> f64 { (0..3).map(|d| (cells[d] * self.order[d] + 1) as f64).product() };
        let nodes = count(&self.cells) * wanted.scale;
        let side = |cells: usize| ((cells as f64 * wanted.scale.cbrt()).round() as usize).max(1);
        let [x, y] = [side(self.cells[0]), side(self.cells[1])];
        let layer = count(&[x, y, 0]);
        let z = ((nodes / layer - 1.0) / self.order[2] as f64).round().max(1.0);
        self.cells = [x, y, z as usize];
        self.tied = wanted.scaled(self.tied).max(2);
        self.removed = wanted.scaled(self.removed);
    }
}

impl Mesh {
    fn new(mut body: Body, wanted: Wanted) -> Result<Mesh> {
        body.shrink(wanted);
        let points: [usize; 3] = std::array::from_fn(|d| body.cells[d] * body.order[d] + 1);
        let box_nodes = points.iter().product();
        let [ox, oy, oz] = body.order;
        let mut elements_at = vec![Vec::new(); (ox + 1) * (oy + 1) * (oz + 1)];
        for (e, element) in body.elements.iter().enumerate() {
            for (a, &[x, y, z]) in element.nodes.iter().enumerate() {
                elements_at[(z * (oy + 1) + y) * (ox + 1) + x].push((e, a));
            }
        }
        let nodes = box_nodes + body.tied;
        let (numbers, first_rows) = (zeros::<u32>(nodes)?, zeros::<u32>(nodes + 1)?);
        let order = Vec::new();
        let mut mesh =
            Mesh { body, seed: wanted.seed, points, box_nodes, elements_at, order, numbers, first_rows };
        mesh.order = mesh.numbering(nodes)?;
        for number in 0..nodes {
            mesh.numbers[mesh.order[number] as usize] = number as u32;
            let unknowns = mesh.unknowns(mesh.order[number] as usize).len() as u32;
            mesh.first_rows[number + 1] = mesh.first_rows[number] + unknowns;
        }
        Ok(mesh)
    }

    /// Returns the nodes in the order of their numbers.
    fn numbering(&self, nodes: usize) -> Result<Vec<u32>> {
        let (stretch, stray, seed) = (self.body.stretch, self.body.stray, self.seed ^ NUMBERS);
        let Some(most) = self.body.longest_stored else {
            return displaced_order(nodes, stretch, stray, seed);
        };
        let near = |node: usize, emit: &mut dyn FnMut(usize)| match node.checked_sub(self.box_nodes) {
            None => self.couple(node, 0, |other, _| emit(other)),
            Some(tied) => self.ties(tied).chain([node]).for_each(emit),
        };
        let graph = pattern(
            Shape { rows: nodes, cols: nodes, entries: 0 },
            |node| {
                let mut count = 0;
                near(node, &mut |_| count += 1);
                count
            },
            |node, columns| {
                let mut slots = columns.iter_mut();
                near(node, &mut |other| slots.next().into_iter().for_each(|slot| *slot = other as u32));
                columns.sort_unstable();
            },
        )?;
        let runs = displaced_runs(nodes, stretch, stray, seed)?;
        limited_order(&runs, &graph, |node| self.unknowns(node as usize).len() as u32, most)
    }

    fn coordinates(&self, node: usize) -> [usize; 3] {
        let [px, py, _] = self.points;
        [node % px, node / px % py, node / px / py]
    }

    /// Returns the directions in which a node can move.
    fn unknowns(&self, node: usize) -> &'static [usize] {
        let [x, y, z] = self.coordinates(node);
        let [px, _, pz] = self.points;
        let on_roller = node < self.box_nodes && y == 0 && z * px + x + self.body.removed >= px * pz;
        if on_roller { &[0, 2] } else { &[0, 1, 2] }
    }

    /// Returns the nodes of the box to which extra node `tied` is tied. The first extra node has the longest
    /// row, the last the shortest; lengths decrease geometrically.
    fn ties(&self, tied: usize) -> std::ops::Range<usize> {
        let stride = self.box_nodes / self.body.tied;
        let toward_last = tied as f64 / (self.body.tied - 1) as f64;
        let (longest, shortest) = (self.body.longest as f64, self.body.shortest as f64);
        let row = (longest * (shortest / longest).powf(toward_last)).round() as usize;
        let first = tied * stride;
        first..first + (row - 1).min(stride)
    }

    /// Returns all nodes of one row, in the order of their columns.
    fn row(&self, row: usize) -> Vec<Neighbour> {
        let number = self.first_rows.partition_point(|&first| first as usize <= row) - 1;
        let node = self.order[number] as usize;
        let along = self.unknowns(node)[row - self.first_rows[number] as usize];
        let mut near = Vec::with_capacity(64);
        if node < self.box_nodes {
            self.couple(node, along, |node, values| near.push(self.neighbour(node, values)));
        } else {
            let ties = self.ties(node - self.box_nodes);
            near.push(self.neighbour(node, TIE[along].map(|k| STIFFNESS * k * ties.len() as f64)));
            near.extend(ties.map(|tie| self.neighbour(tie, TIE[along].map(|k| -STIFFNESS * k))));
        }
        near.sort_unstable_by_key(|near| near.first);
        near
    }

    fn neighbour(&self, node: usize, values: [f64; 3]) -> Neighbour {
        let first = self.first_rows[self.numbers[node] as usize];
        Neighbour { first, unknowns: self.unknowns(node), values }
    }

    /// Computes one row of a node of the box: the contributions of its elements in ascending
    /// order, of springs and of ties.
    fn couple(&self, node: usize, along: usize, mut emit: impl FnMut(usize, [f64; 3])) {
        let (centre_at, order) = (self.coordinates(node), self.body.order);
        // The window of nodes around this one, `order` steps in each direction.
        let [wx, wy, wz] = order.map(|order| 2 * order + 1);
        let mut sums = [[0.0; 3]; 175];
        let mut coupled = [false; 175];
        let centre = (order[2] * wy + order[1]) * wx + order[0];
        self.for_each_cell(centre_at, |cell, [ox, oy, oz]| {
            let factor = STIFFNESS * 10f64.powf(Random::at(self.seed, cell).unit());
            for &(e, own) in &self.elements_at[(oz * (order[1] + 1) + oy) * (order[0] + 1) + ox] {
                let element = &self.body.elements[e];
                for (other, &[x, y, z]) in element.nodes.iter().enumerate() {
                    let far = [x + order[0] - ox, y + order[1] - oy, z + order[2] - oz];
                    let slot = (far[2] * wy + far[1]) * wx + far[0];
                    coupled[slot] = true;
                    let block = element.block(own, other);
                    (0..3).for_each(|d| sums[slot][d] += factor * block[along][d]);
                }
            }
        });
        if centre_at[1] == 0 {
            sums[centre][along] += STIFFNESS;
        }
        let tied = (node / (self.box_nodes / self.body.tied)).min(self.body.tied - 1);
        if self.ties(tied).contains(&node) {
            (0..3).for_each(|d| sums[centre][d] += STIFFNESS * TIE[along][d]);
            emit(self.box_nodes + tied, TIE[along].map(|k| -STIFFNESS * k));
        }
        for slot in (0..wx * wy * wz).filter(|&slot| coupled[slot]) {
            let far = [slot % wx, slot / wx % wy, slot / wx / wy];
            let [x, y, z] = [0, 1, 2].map(|d| centre_at[d] + far[d] - order[d]);
            emit((z * self.points[1] + y) * self.points[0] + x, sums[slot]);
        }
    }

    /// Visits the cells that a node of the box belongs to, in ascending order, each with the
    /// offset of the node within it.
    fn for_each_cell(&self, node: [usize; 3], mut visit: impl FnMut(u64, [usize; 3])) {
        let (cells, order) = (self.body.cells, self.body.order);
        let along: [_; 3] = std::array::from_fn(|d| {
            let last = node[d] / order[d];
            let first = if node[d].is_multiple_of(order[d]) { last.saturating_sub(1) } else { last };
            first..=last.min(cells[d] - 1)
        });
        for z in along[2].clone() {
            for y in along[1].clone() {
                for x in along[0].clone() {
                    let offset = [node[0] - x * order[0], node[1] - y * order[1], node[2] - z * order[2]];
                    visit(((z * cells[1] + y) * cells[0] + x) as u64, offset);
                }
            }
        }
    }
}
