//! The `solver` program: parse, run, exit code.

fn main() -> std::process::ExitCode {
    solver::cli::run()
}
