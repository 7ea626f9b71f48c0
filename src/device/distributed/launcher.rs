//! What launchers of processes, such as `mpirun`, store in environment variables.

/// The variables with the number of processes: Open MPI, MPICH and Intel MPI, MVAPICH.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
/// Those with the number of this process, from 0: the same ones, and Slurm.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID"];
/// Those with the number of this process among those on this machine: Open MPI, MPICH, MVAPICH and Slurm.
#[cfg(any(test, feature = "mpi"))]
const LOCAL_RANKS: [&str; 4] =
    ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"];

/// Returns the number of processes that a launcher has started with this one; 1 without a launcher.
pub(crate) fn processes() -> usize {
    processes_in(number)
}

/// Returns whether this is the first process of the launcher.
pub(crate) fn is_first() -> bool {
    is_first_in(number)
}

/// Returns the number of this process among those on this machine, if the launcher tells it.
#[cfg(feature = "mpi")]
pub(crate) fn number_on_this_machine() -> Option<usize> {
    LOCAL_RANKS.into_iter().find_map(number)
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

fn processes_in(number: impl Fn(&str) -> Option<usize>) -> usize {
    // Slurm sets the variable of tasks in batch scripts, too, which are one process.
    let slurm = || number("SLURM_STEP_NUM_TASKS").filter(|_| number("SLURM_PROCID").is_some());
    SIZES.into_iter().find_map(&number).or_else(slurm).unwrap_or(1)
}

fn is_first_in(number: impl Fn(&str) -> Option<usize>) -> bool {
    RANKS.into_iter().find_map(number).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variables of the third of four processes, the second on its machine, as the manuals of these
    /// launchers describe them.
    const THIRD_OF_FOUR: &[(&str, &[(&str, usize)])] = &[
        (
            "Open MPI",
            &[("OMPI_COMM_WORLD_SIZE", 4), ("OMPI_COMM_WORLD_RANK", 2), ("OMPI_COMM_WORLD_LOCAL_RANK", 1)],
        ),
        ("MPICH", &[("PMI_SIZE", 4), ("PMI_RANK", 2), ("MPI_LOCALRANKID", 1)]),
        (
            "MVAPICH",
            &[("MV2_COMM_WORLD_SIZE", 4), ("MV2_COMM_WORLD_RANK", 2), ("MV2_COMM_WORLD_LOCAL_RANK", 1)],
        ),
        ("srun", &[("SLURM_STEP_NUM_TASKS", 4), ("SLURM_PROCID", 2), ("SLURM_LOCALID", 1)]),
        // A batch script is a process of Slurm; the launcher that it starts counts its own.
        (
            "Open MPI in a batch script",
            &[
                ("SLURM_PROCID", 0),
                ("SLURM_LOCALID", 0),
                ("OMPI_COMM_WORLD_SIZE", 4),
                ("OMPI_COMM_WORLD_RANK", 2),
                ("OMPI_COMM_WORLD_LOCAL_RANK", 1),
            ],
        ),
    ];

    fn lookup<'a>(set: &'a [(&str, usize)]) -> impl Fn(&str) -> Option<usize> + 'a {
        move |name| set.iter().find(|(variable, _)| *variable == name).map(|(_, number)| *number)
    }

    #[test]
    fn processes_find_their_places_in_the_variables_of_each_launcher() {
        for (launcher, set) in THIRD_OF_FOUR {
            assert_eq!(processes_in(lookup(set)), 4, "{launcher}");
            assert!(!is_first_in(lookup(set)), "{launcher}");
            assert_eq!(LOCAL_RANKS.into_iter().find_map(lookup(set)), Some(1), "{launcher}");
        }
    }

    #[test]
    fn a_batch_script_and_a_program_without_a_launcher_are_one_process() {
        let script = [("SLURM_PROCID", 0), ("SLURM_LOCALID", 0)];
        for set in [&script[..], &[]] {
            assert_eq!(processes_in(lookup(set)), 1);
            assert!(is_first_in(lookup(set)));
        }
        // Slurm may describe the step of the script, but not the process.
        assert_eq!(processes_in(lookup(&[("SLURM_STEP_NUM_TASKS", 4)])), 1);
    }
}
