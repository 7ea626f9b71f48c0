//! Lists of GPUs in names of devices: `cuda:0,1` and `cuda:all`.

use crate::device::cuda;
use crate::error::{Error, Result};

/// Returns the numbers of the GPUs that the name of a device lists; none if the name is not a list.
pub(super) fn listed(name: &str) -> Result<Vec<usize>> {
    let refuse = |reason: String| Err(Error::setting("device", name, reason));
    let indices: Vec<usize> = match name.strip_prefix("cuda:") {
        Some("all") => match cuda::count()? {
            0 => return refuse("the CUDA driver lists no GPU; use the CPU".to_owned()),
            count => (0..count).collect(),
        },
        Some(list) if list.contains(',') => {
            let indices: Option<Vec<usize>> = list.split(',').map(|index| index.parse().ok()).collect();
            match indices {
                Some(indices) => indices,
                None => return refuse("a list of GPUs is cuda:0,1 or cuda:all".to_owned()),
            }
        }
        _ => return Ok(Vec::new()),
    };
    let twice = indices.iter().enumerate().find(|(at, index)| indices[..*at].contains(index));
    match twice {
        Some((_, index)) => {
            refuse(format!("GPU {index} is listed twice; each part of the rows needs a GPU of its own"))
        }
        None => Ok(indices),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_each_gpu_once_and_other_names_are_no_lists() {
        assert_eq!(listed("cuda:2,0").unwrap(), [2, 0]);
        for name in ["auto", "cpu", "cuda", "cuda:1", "cuda:x", "tpu", "0,1"] {
            assert!(listed(name).unwrap().is_empty(), "{name}");
        }
        for (name, part) in [
            ("cuda:0,x", "cuda:0,1 or cuda:all"),
            ("cuda:0,", "cuda:0,1 or cuda:all"),
            ("cuda:1,-2", "cuda:0,1 or cuda:all"),
            ("cuda:2,1,2", "GPU 2 is listed twice"),
        ] {
            let message = listed(name).unwrap_err().to_string();
            assert!(message.contains(part) && message.contains(name), "{message}");
        }
    }
}
