//! The nodes of a box, numbered along the first coordinate first, and their neighbours.

/// A box of nodes, with the subset of the surrounding 3x3x3 nodes that count as neighbours. A
/// node is its own neighbour.
#[derive(Clone)]
pub(super) struct Grid {
    extents: [usize; 3],
    /// Steps to the neighbours in ascending order of node numbers, each -1, 0 or 1 in each direction.
    steps: Vec<[isize; 3]>,
}

impl Grid {
    /// Neighbours differ by one in at most `apart` directions: 1 gives stencils of 5 and 7
    /// points, 3 gives 27.
    pub(super) fn new(extents: [usize; 3], apart: usize) -> Grid {
        let around = [-1, 0, 1];
        let steps = around.iter().flat_map(|&z| around.map(|y| around.map(|x| [x, y, z]))).flatten();
        let near = |step: &[isize; 3]| step.iter().filter(|&&s| s != 0).count() <= apart;
        // A direction with one node has no neighbours.
        let inside = |step: &[isize; 3]| step.iter().zip(extents).all(|(&s, extent)| s == 0 || extent > 1);
        Grid { extents, steps: steps.filter(near).filter(inside).collect() }
    }

    /// Returns the most neighbours that a node has, itself included.
    pub(super) fn points(&self) -> usize {
        self.steps.len()
    }

    /// Returns the number of neighbours summed over all nodes.
    pub(super) fn entries(&self) -> u64 {
        let pairs = |step: &[isize; 3]| {
            step.iter()
                .zip(self.extents)
                .map(|(s, extent)| (extent - s.unsigned_abs()) as u64)
                .product::<u64>()
        };
        self.steps.iter().map(pairs).sum()
    }

    /// Returns the coordinates of a node.
    pub(super) fn coordinates(&self, node: usize) -> [usize; 3] {
        let [nx, ny, _] = self.extents;
        [node % nx, node / nx % ny, node / nx / ny]
    }

    /// Returns the neighbours of a node, in ascending order.
    pub(super) fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> {
        let coordinates = self.coordinates(node);
        self.steps.iter().filter_map(move |step| {
            let mut neighbour = [0; 3];
            for (d, c) in neighbour.iter_mut().enumerate() {
                // Below zero the addition wraps to a number beyond every extent.
                *c = coordinates[d].wrapping_add_signed(step[d]);
                if *c >= self.extents[d] {
                    return None;
                }
            }
            let [x, y, z] = neighbour;
            Some((z * self.extents[1] + y) * self.extents[0] + x)
        })
    }
}
