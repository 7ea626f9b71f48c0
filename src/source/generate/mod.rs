//! Matrices made from a description: `name:SIZE,parameter=value,...`.
//!
//! Every generator is a row of a table. The rows of a matrix are made in parallel and written directly to the
//! final arrays. Random numbers depend only on a seed and an index, so the result is the same to the last bit
//! for any number of threads.

mod assemble;
mod banded;
mod blockband;
mod density;
mod distinct;
mod elasticity3d;
mod grid;
mod hex27;
mod like;
mod mesh;
mod poisson;
pub(crate) mod random;
mod rmat;
mod sample;
mod simplices;
mod spd_random;
mod spec;
mod star;
mod symmetric;
mod uniform;

use super::Loaded;
use super::catalog::Entry;
use crate::error::{Error, Result};
use crate::format::Csr;
use crate::parallel::room;
use crate::params::{Param, split_name};
pub(crate) use distinct::Draws;
pub(crate) use mesh::Mesh;
use spec::Spec;
use std::ops::Range;
use std::sync::Arc;

/// An entry of the table of generators.
struct Generator {
    name: &'static str,
    /// The syntax of the description: parts in brackets are optional and show their defaults.
    form: &'static str,
    params: &'static [Param],
    /// Checks the values that depend on each other and plans the matrix.
    plan: fn(&Spec<'_>) -> Result<Recipe>,
}

const GENERATORS: &[Generator] = &[
    Generator {
        name: "poisson2d",
        form: "poisson2d:NXxNY[,boundary=dirichlet|neumann], for example poisson2d:1000x1000",
        params: poisson::PARAMS_2D,
        plan: poisson::make_2d,
    },
    Generator {
        name: "poisson3d",
        form: "poisson3d:NXxNYxNZ[,points=7|27][,boundary=dirichlet|neumann], for example poisson3d:100x100x100",
        params: poisson::PARAMS_3D,
        plan: poisson::make_3d,
    },
    Generator {
        name: "hex27",
        form: "hex27:NXxNYxNZ[,dof=1], for example hex27:48x48x50,dof=3",
        params: hex27::PARAMS,
        plan: hex27::make,
    },
    Generator {
        name: "elasticity3d",
        form: "elasticity3d:NXxNYxNZ[,contrast=1][,seed=1], for example elasticity3d:32x32x32,contrast=100",
        params: elasticity3d::PARAMS,
        plan: elasticity3d::make,
    },
    Generator {
        name: "delaunay2d",
        form: "delaunay2d:n=N[,unknowns=1|2][,points=random|graded|clustered][,order=curve|random|rcm][,jumps=1]\
               [,boundary=dirichlet|neumann][,seed=1], for example delaunay2d:n=100000,points=graded",
        params: simplices::PARAMS_2D,
        plan: simplices::make_2d,
    },
    Generator {
        name: "delaunay3d",
        form: "delaunay3d:n=N[,unknowns=1|3][,shape=cube|plate|beam][,points=random|graded][,order=curve|random|rcm]\
               [,jumps=1][,boundary=dirichlet|neumann][,seed=1], for example delaunay3d:n=100000,unknowns=3,shape=plate",
        params: simplices::PARAMS_3D,
        plan: simplices::make_3d,
    },
    Generator {
        name: "blockband",
        form: "blockband:n=N[,block=5][,density=0.05][,band=0.25|,contiguous][,shift=D|,symmetric[,shift=0.9]][,seed=1], \
               for example blockband:n=32000,contiguous",
        params: blockband::PARAMS,
        plan: blockband::make,
    },
    Generator {
        name: "uniform",
        form: "uniform:n=N[,row=16][,cols=N][,seed=1], for example uniform:n=100000,row=100",
        params: uniform::PARAMS,
        plan: uniform::make,
    },
    Generator {
        name: "density",
        form: "density:n=N[,sparsity=0.99][,cols=N][,seed=1], for example density:n=16384,sparsity=0.7",
        params: density::PARAMS,
        plan: density::make,
    },
    Generator {
        name: "banded",
        form: "banded:n=N[,half=10][,fill=1][,seed=1], for example banded:n=1000000,half=15",
        params: banded::PARAMS,
        plan: banded::make,
    },
    Generator {
        name: "spd-random",
        form: "spd-random:n=N[,row=16][,shift=1][,seed=1], for example spd-random:n=100000,row=30",
        params: spd_random::PARAMS,
        plan: spd_random::make,
    },
    Generator {
        name: "rmat",
        form: "rmat:scale=S|n=N,edges=M|factor=M/N[,a=0.57][,b=0.19][,c=0.19][,weighted][,permuted][,loopless][,seed=1], \
               for example rmat:scale=22,edges=64000000",
        params: rmat::PARAMS,
        plan: rmat::make,
    },
    Generator {
        name: "star",
        form: "star:n=N,hub=H[,edges=E][,seed=1], for example star:n=18571154,hub=7397164",
        params: star::PARAMS,
        plan: star::make,
    },
    Generator {
        name: "F1-like",
        form: "F1-like[:scale=1][,seed=1], a stand-in for Koutsovasilis/F1, for example F1-like:scale=0.01",
        params: like::PARAMS,
        plan: like::f1,
    },
    Generator {
        name: "inline_1-like",
        form: "inline_1-like[:scale=1][,seed=1], a stand-in for GHS_psdef/inline_1, for example inline_1-like:scale=0.01",
        params: like::PARAMS,
        plan: like::inline_1,
    },
    Generator {
        name: "crankseg_1-like",
        form: "crankseg_1-like[:scale=1][,seed=1], a stand-in for GHS_psdef/crankseg_1, for example crankseg_1-like:scale=0.01",
        params: like::PARAMS,
        plan: like::crankseg_1,
    },
    Generator {
        name: "ecology1-like",
        form: "ecology1-like[:scale=1][,seed=1], a stand-in for McRae/ecology1, for example ecology1-like:scale=0.01",
        params: like::PARAMS,
        plan: like::ecology1,
    },
    Generator {
        name: "mawi-like",
        form: "mawi-like[:scale=1][,seed=1], a stand-in for MAWI/mawi_201512012345, for example mawi-like:scale=0.01",
        params: like::PARAMS,
        plan: like::mawi,
    },
    Generator {
        name: "mawi_201512012345-like",
        form: "mawi_201512012345-like[:scale=1][,seed=1], the same as mawi-like, for example mawi_201512012345-like:scale=0.01",
        params: like::PARAMS,
        plan: like::mawi,
    },
    Generator {
        name: "stackoverflow-like",
        form: "stackoverflow-like[:scale=1][,seed=1], a stand-in for SNAP/sx-stackoverflow, for example stackoverflow-like:scale=0.01",
        params: like::PARAMS,
        plan: like::stackoverflow,
    },
    Generator {
        name: "sx-stackoverflow-like",
        form: "sx-stackoverflow-like[:scale=1][,seed=1], the same as stackoverflow-like, for example sx-stackoverflow-like:scale=0.01",
        params: like::PARAMS,
        plan: like::stackoverflow,
    },
];

/// A matrix whose description has been checked, ready to be made.
struct Recipe {
    bytes: u128,
    /// Rows and entries, exact or approximate, if they are known in advance.
    size: Option<(u64, u64)>,
    /// The real matrix that this one imitates.
    imitated: Option<&'static Entry>,
    make: Box<dyn FnOnce() -> Result<Loaded>>,
    /// The rows, if they can be made separately.
    mesh: Option<Mesh>,
    /// The draws that the matrix consists of.
    draws: Option<MakeDraws>,
    /// The rows, if all have equally many entries and can be made separately.
    equal: Option<EqualRows>,
}

type MakeDraws = Box<dyn FnOnce() -> Result<Draws>>;

/// A square matrix with the same number of entries in each row, whose rows can be made separately.
pub(crate) struct EqualRows {
    /// Number of rows.
    pub rows: usize,
    /// Number of entries of a row.
    pub entries: usize,
    make: Box<dyn Fn(Range<usize>) -> Result<Csr>>,
}

impl EqualRows {
    /// Makes some rows; their columns are those of the whole matrix.
    pub(crate) fn make(&self, rows: Range<usize>) -> Result<Csr> {
        (self.make)(rows)
    }
}

impl Recipe {
    /// Plans a matrix; `bytes` is the least that is allocated at the same time.
    fn new(bytes: u128, make: impl FnOnce() -> Result<Loaded> + 'static) -> Recipe {
        Recipe {
            bytes,
            size: None,
            imitated: None,
            make: Box::new(make),
            mesh: None,
            draws: None,
            equal: None,
        }
    }

    /// Fails if the matrix does not fit into the memory.
    fn checked(self) -> Result<Recipe> {
        let fits = usize::try_from(self.bytes).map_err(|_| Error::OutOfMemory { bytes: self.bytes })?;
        room::<u8>(fits)?;
        Ok(self)
    }

    fn by_rows(self, mesh: Mesh) -> Recipe {
        Recipe { mesh: Some(mesh), ..self }
    }

    fn by_draws(self, draws: impl FnOnce() -> Result<Draws> + 'static) -> Recipe {
        Recipe { draws: Some(Box::new(draws)), ..self }
    }

    /// Describes a square matrix with `entries` entries in each of `rows` rows.
    fn by_equal_rows(
        self,
        [rows, entries]: [usize; 2],
        make: impl Fn(Range<usize>) -> Result<Csr> + 'static,
    ) -> Recipe {
        Recipe { equal: Some(EqualRows { rows, entries, make: Box::new(make) }), ..self }
    }

    fn sized(self, rows: usize, entries: u64) -> Recipe {
        Recipe { size: Some((rows as u64, entries)), ..self }
    }
}

/// Returns the generator that a description names, and the text after the colon.
fn find(description: &str) -> Option<(&'static Generator, Option<&str>)> {
    let (name, rest) = split_name(description);
    GENERATORS.iter().find(|g| g.name == name).map(|g| (g, rest))
}

/// Checks whether `what` names a generator.
pub(crate) fn exists(what: &str) -> bool {
    find(what).is_some()
}

/// Runs the generator that `what` names; returns `None` if it names no generator.
pub fn generate(what: &str) -> Option<Result<Loaded>> {
    generate_with(what, false)
}

/// Runs a generator, and adds the coordinates of a grid if they are wanted.
pub(crate) fn generate_with(what: &str, coordinates: bool) -> Option<Result<Loaded>> {
    Some(plan(what)?.and_then(|recipe| {
        let mut loaded = (recipe.make)()?;
        if let Some(mesh) = recipe.mesh.filter(|_| coordinates && loaded.coordinates.is_none()) {
            loaded.coordinates = Some(Arc::new(mesh.points()?));
        }
        Ok(loaded)
    }))
}

fn plan(what: &str) -> Option<Result<Recipe>> {
    Some(unchecked_plan(what)?.and_then(Recipe::checked))
}

/// Returns the recipe, even if the whole matrix does not fit into the memory.
fn unchecked_plan(what: &str) -> Option<Result<Recipe>> {
    let (generator, rest) = find(what)?;
    Some(Spec::new(what, rest, generator).and_then(|spec| (generator.plan)(&spec)))
}

/// Returns the mesh of a generator whose rows can be made separately; `None` if `what` names
/// no such generator.
pub(crate) fn mesh(what: &str) -> Result<Option<Mesh>> {
    unchecked_plan(what).map_or(Ok(None), |recipe| recipe.map(|recipe| recipe.mesh))
}

/// Returns the rows of a generator of equally many entries in each row; `None` if `what` names
/// no such generator.
pub(crate) fn equal_rows(what: &str) -> Result<Option<EqualRows>> {
    unchecked_plan(what).map_or(Ok(None), |recipe| recipe.map(|recipe| recipe.equal))
}

/// Returns whether `what` names a generator whose matrix consists of draws.
pub(crate) fn is_drawn(what: &str) -> Result<bool> {
    unchecked_plan(what).map_or(Ok(false), |recipe| recipe.map(|recipe| recipe.draws.is_some()))
}

/// Returns the draws of a generator whose matrix consists of draws; `None` if `what` names no such generator.
pub(crate) fn draws(what: &str) -> Result<Option<Draws>> {
    let Some(recipe) = unchecked_plan(what) else { return Ok(None) };
    recipe?.draws.map(|draws| draws()).transpose()
}

/// Returns rows and entries of the matrix that `what` describes, if they are known before it is made. Fails
/// where [`generate`] fails before it begins.
pub(crate) fn size(what: &str) -> Result<Option<(u64, u64)>> {
    plan(what).map_or(Ok(None), |recipe| recipe.map(|recipe| recipe.size))
}

/// Returns rows and entries as [`size`] does, or else an estimate from the least memory of the matrix, in
/// which the entries stand for the rows, too. `None` if `what` names no generator.
pub(crate) fn estimate(what: &str) -> Result<Option<(u64, u64)>> {
    let Some(recipe) = unchecked_plan(what) else { return Ok(None) };
    let recipe = recipe?;
    let equal =
        recipe.equal.as_ref().map(|equal| (equal.rows as u64, equal.rows as u64 * equal.entries as u64));
    let by_memory = || (0, u64::try_from(recipe.bytes / ENTRY).unwrap_or(u64::MAX));
    Ok(Some(recipe.size.or(equal).unwrap_or_else(by_memory)))
}

/// Bytes of an entry: a value and its column.
const ENTRY: u128 = 12;

/// Returns the real matrix that the one described by `what` imitates, if any.
pub(crate) fn imitated(what: &str) -> Option<&'static Entry> {
    plan(what)?.ok()?.imitated
}

/// Returns name and syntax of every generator.
pub fn forms() -> impl Iterator<Item = (&'static str, &'static str)> {
    GENERATORS.iter().map(|g| (g.name, g.form))
}

#[cfg(test)]
mod tests;
