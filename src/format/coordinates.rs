//! Coordinates of the nodes of a mesh whose unknowns are the rows of a matrix.

use super::Dense;
use crate::error::{Error, Result};
use crate::text::{COUNTED, Index};

/// The positions of the nodes of a mesh in the plane or in space. A matrix of n rows on such a mesh has
/// n / nodes unknowns in each node, in consecutive rows.
///
/// ```
/// # fn main() -> solver::Result<()> {
/// use solver::format::Coordinates;
/// let corners = Coordinates::new(2, vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0])?;
/// assert_eq!((corners.nodes(), corners.node(1)), (3, &[1.0, 0.0][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Coordinates {
    /// A row for each node.
    points: Dense,
}

impl Coordinates {
    /// Creates coordinates from the values of all nodes, those of each node together. There are 2 or 3
    /// dimensions, and every value is finite.
    pub fn new(dimensions: usize, values: Vec<f64>) -> Result<Coordinates> {
        if !values.len().is_multiple_of(dimensions.max(1)) {
            let reason = format!(
                "{} values cannot be divided into nodes of {dimensions} coordinates each; give every node all of its coordinates",
                values.len()
            );
            return Err(Error::BadCoordinates { reason });
        }
        Coordinates::of_points(Dense::new(values.len() / dimensions.max(1), dimensions, values)?)
    }

    /// Takes the rows of a dense matrix as nodes.
    pub(crate) fn of_points(points: Dense) -> Result<Coordinates> {
        let dimensions = points.cols();
        let fault = |reason| Err(Error::BadCoordinates { reason });
        if !(2..=3).contains(&dimensions) {
            return fault(format!(
                "a node has {dimensions} coordinates; it must have 2 or 3, in a row for each node"
            ));
        }
        if let Some(at) = points.values().iter().position(|value| !value.is_finite()) {
            let (node, along) = (at / dimensions, ["x", "y", "z"][at % dimensions]);
            let value = points.values()[at];
            return fault(format!(
                "{along} of node {} ({COUNTED}) is {value}; find out where this value comes from, because coordinates must be finite",
                Index(node)
            ));
        }
        Ok(Coordinates { points })
    }

    /// Returns the number of coordinates of a node, 2 or 3.
    pub fn dimensions(&self) -> usize {
        self.points.cols()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.points.rows()
    }

    /// Returns the coordinates of a node. Panics if there is no such node.
    pub fn node(&self, node: usize) -> &[f64] {
        self.points.row(node)
    }

    /// Returns the coordinates of all nodes, those of each node together.
    pub fn values(&self) -> &[f64] {
        self.points.values()
    }

    /// Returns the nodes as the rows of a dense matrix.
    pub(crate) fn points(&self) -> &Dense {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_read_back_as_they_were_given() {
        let plane = Coordinates::new(2, vec![0.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((plane.dimensions(), plane.nodes()), (2, 2));
        assert_eq!((plane.node(1), plane.values()), (&[2.0, 3.0][..], &[0.0, 1.0, 2.0, 3.0][..]));
        let space = Coordinates::new(3, vec![0.0, 1.0, 2.0]).unwrap();
        assert_eq!((space.dimensions(), space.nodes(), space.node(0)), (3, 1, &[0.0, 1.0, 2.0][..]));
    }

    #[test]
    fn values_that_are_no_nodes_are_refused_with_the_reason() {
        let refused = |dimensions, values: &[f64], told: &str| {
            let message = Coordinates::new(dimensions, values.to_vec()).unwrap_err().to_string();
            assert!(message.contains(told), "{message}");
        };
        refused(2, &[1.0, 2.0, 3.0], "3 values cannot be divided into nodes of 2");
        refused(0, &[], "0 coordinates; it must have 2 or 3");
        refused(1, &[1.0], "1 coordinates; it must have 2 or 3");
        refused(4, &[1.0; 4], "4 coordinates; it must have 2 or 3");
        refused(3, &[0.0, 1.0, 2.0, 3.0, f64::NAN, 5.0], "y of node 1 (counted from 0) is NaN");
        refused(2, &[0.0, 0.0, f64::INFINITY, 0.0], "x of node 1 (counted from 0) is inf");
    }
}
