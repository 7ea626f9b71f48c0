//! The `solver` program: parses arguments, runs, and returns an exit code.

#[cfg(unix)]
mod allocator;

#[cfg(unix)]
#[global_allocator]
static ALLOCATOR: allocator::Checked = allocator::Checked;

fn main() -> std::process::ExitCode {
    #[cfg(unix)]
    allocator::prepare();
    solver::cli::run()
}
