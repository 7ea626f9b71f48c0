//! What launchers of processes, such as `mpirun`, store in environment variables.

/// The variables with the number of processes: Open MPI, MPICH and Intel MPI, MVAPICH.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
/// Those with the number of this process, from 0: the same ones, and Slurm.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"];
/// Those with the number of this process among those on this machine: Open MPI, MPICH, MVAPICH and Slurm.
const LOCAL_RANKS: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"];

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the number of processes that a launcher has started with this one; 1 without a launcher.
pub fn processes() -> usize {
    // Slurm sets the variable of tasks in batch scripts, too, which are one process.
    let slurm = || number("SLURM_STEP_NUM_TASKS").filter(|_| number("SLURM_PROCID").is_some());
    SIZES.into_iter().find_map(number).or_else(slurm).unwrap_or(1)
}

/// Returns whether this is the first process of the launcher.
pub fn is_first() -> bool {
    RANKS.into_iter().find_map(number).unwrap_or(0) == 0
}

/// Returns the number of this process among those on this machine, if the launcher tells it.
pub fn number_on_this_machine() -> Option<usize> {
    LOCAL_RANKS.into_iter().find_map(number)
}
