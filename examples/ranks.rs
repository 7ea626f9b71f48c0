//! Ranks the vertices of a graph, and again for a surfer who jumps to one vertex: cargo run --release --example ranks

use solver::prelude::*;

fn main() -> solver::Result<()> {
    let graph = Matrix::open_graph("rmat:scale=12,factor=16")?;
    let mut prepared = Pagerank::new(&graph).tol(1e-12).prepare()?;
    let ranks = prepared.solve()?;
    println!("{}", ranks.report());
    for vertex in ["12", "17"] {
        prepared.personalise(Some(Weights::of_vertices([vertex])));
        for top in prepared.solve()?.top(3) {
            println!("jumping to {vertex}: vertex {} has rank {:.3e}", top.id.unwrap_or_default(), top.rank);
        }
    }
    Ok(())
}
