//! Ranks the pages of a small web from links in memory, first with uniform jumps of the surfer,
//! then with jumps to one page.

#![allow(clippy::print_stdout)] // The library itself does not print.

use solver::prelude::*;

const PAGES: [&str; 6] = ["home", "news", "shop", "help", "about", "blog"];
const LINKS: [(usize, usize); 10] =
    [(0, 1), (0, 2), (0, 4), (1, 0), (1, 5), (2, 0), (2, 3), (3, 0), (4, 0), (5, 1)];

fn main() -> solver::Result<()> {
    let graph = Matrix::from_edges(LINKS)?;
    let mut prepared = Pagerank::new(&graph).tol(1e-12).prepare()?;
    let ranks = prepared.solve()?;
    for (page, rank) in PAGES.iter().zip(ranks.ranks()) {
        println!("{page:<6} {rank:.4}");
    }
    // The l1 norm of the difference from the exact ranks is at most this.
    println!("certain to {:.0e}\n", ranks.error_bound());

    // Links and operator are reused; only the distribution of the jumps changes.
    prepared.personalise(Some(Weights::from_vertices(["5"])));
    let from_the_blog = prepared.solve()?;
    println!("jumping to the blog:\n{}", from_the_blog.report());
    assert!(ranks.converged() && from_the_blog.converged());
    Ok(())
}
