//! Checks whether other users can have put files into a folder.

use std::path::Path;

/// Returns who else can put files into a folder or replace it, with a remedy; `None` if only this user and
/// root can. A folder that does not exist yet counts as made by this user. All parent folders are checked,
/// with and without links resolved.
///
/// The remedy changes the permissions of the folder itself only, which this program has made: the folders
/// above it may serve others as they are.
#[cfg(unix)]
pub(crate) fn others_can_write(folder: &Path) -> Option<String> {
    // SAFETY: the call takes no arguments, returns a number, and cannot fail.
    let user = unsafe { libc::geteuid() };
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let real = absolute.ancestors().find_map(|ancestor| {
        let missing = absolute.strip_prefix(ancestor).ok()?;
        Some(std::fs::canonicalize(ancestor).ok()?.join(missing))
    });
    let paths: Vec<std::path::PathBuf> = [Some(absolute), real].into_iter().flatten().collect();
    let all = paths.iter().flat_map(|path| path.ancestors().map(move |folder| (folder, folder == path)));
    all.into_iter().find_map(|(folder, last)| fault(folder, last, user))
}

/// Other systems have no permissions of this form.
#[cfg(not(unix))]
pub(crate) fn others_can_write(_: &Path) -> Option<String> {
    None
}

/// Returns the fault of one folder: the last of a path, or one that leads to it.
#[cfg(unix)]
fn fault(folder: &Path, last: bool, user: u32) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    const ROOT: u32 = 0;
    const STICKY: u32 = 0o1000;
    const GROUP: u32 = 0o020;
    const ALL: u32 = 0o002;
    let about = std::fs::metadata(folder).ok()?;
    let shown = folder.display();
    if !about.is_dir() {
        return Some(format!("{shown} is not a folder"));
    }
    if ![user, ROOT].contains(&about.uid()) && !is_root_unmapped(about.uid()) {
        return Some(format!("{shown} belongs to user {}", about.uid()));
    }
    let own_group = about.gid() == user || about.gid() == ROOT || is_private_group(about.gid(), user);
    let by_group = about.mode() & GROUP != 0 && !own_group;
    // In a sticky folder users cannot replace files of each other, but all users can add files.
    let sticky = about.mode() & STICKY != 0 && !last;
    if sticky || (about.mode() & ALL == 0 && !by_group) {
        return None;
    }
    let remedy =
        if last && !folder.is_symlink() { format!("; run chmod go-w {shown}") } else { String::new() };
    Some(format!("other users can write to {shown}{remedy}"))
}

/// Returns whether a group is the private group that many systems give to each user: it has the name of the
/// user, and no other member.
#[cfg(unix)]
fn is_private_group(group: u32, user: u32) -> bool {
    /// Returns the first and the last field of the line of a file like `/etc/passwd` whose
    /// third field is this number.
    fn entry(file: &str, number: u32) -> Option<(String, String)> {
        let text = std::fs::read_to_string(file).ok()?;
        text.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let found = fields.get(2)?.parse() == Ok(number);
            found.then(|| (fields[0].to_owned(), fields[fields.len() - 1].to_owned()))
        })
    }
    let user = entry("/etc/passwd", user).map(|(name, _)| name);
    entry("/etc/group", group).zip(user).is_some_and(|((name, members), user)| {
        name == user && members.split(',').all(|member| member.is_empty() || member == user)
    })
}

/// Returns whether files of root show this owner: in a container that does not map root, the system reports
/// one number for all users from outside.
#[cfg(unix)]
fn is_root_unmapped(owner: u32) -> bool {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let first = |line: &str| line.split_whitespace().next()?.parse::<u32>().ok();
    let overflow = first(&read("/proc/sys/kernel/overflowuid"));
    let map = read("/proc/self/uid_map");
    overflow == Some(owner) && !map.is_empty() && map.lines().filter_map(first).all(|inside| inside != 0)
}

/// Creates a folder and its missing parents; other users cannot write to the new folders, for any umask.
pub(crate) fn create_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.recursive(true).create(folder)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir_all, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn chmod(folder: &Path, mode: u32) {
        set_permissions(folder, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_writable_folder_anywhere_on_the_path_to_the_cache_is_found() {
        let root = tempfile::tempdir().unwrap();
        let (open, cache) = (root.path().join("open"), root.path().join("open/cache"));
        create_dir_all(&cache).unwrap();
        assert_eq!(others_can_write(&cache), None);
        assert_eq!(others_can_write(&cache.join("not/there/yet")), None);
        for mode in [0o777, 0o757] {
            chmod(&open, mode);
            for folder in [&open, &cache, &cache.join("not/there/yet")] {
                let fault = others_can_write(folder).unwrap();
                assert!(fault.contains(&format!("write to {}", open.display())), "{fault}");
            }
        }
        chmod(&open, 0o755);
        chmod(&cache, 0o777);
        let remedy = format!("run chmod go-w {}", cache.display());
        assert!(others_can_write(&cache).unwrap().ends_with(&remedy), "the folder itself");
        let above = others_can_write(&cache.join("choices")).unwrap();
        assert!(!above.contains("chmod"), "a folder above may serve others: {above}");
        chmod(&cache, 0o755);
        chmod(&open, 0o777);
        let link = root.path().join("link");
        symlink(&cache, &link).unwrap();
        assert!(others_can_write(&link).is_some(), "the target of a link is checked");
        chmod(&open, 0o1777);
        assert_eq!(others_can_write(&cache), None, "other users cannot replace files in a sticky folder");
        assert_eq!(others_can_write(&open.join("not/there/yet")), None, "the new folders are not sticky");
        for mode in [0o777, 0o1777] {
            chmod(&cache, mode);
            assert!(others_can_write(&link).is_some(), "other users can add files");
        }
    }

    #[test]
    fn what_is_no_folder_is_named_without_advice_on_permissions() {
        for path in ["/dev/null", "/dev/null/choices"] {
            assert_eq!(
                others_can_write(Path::new(path)).as_deref(),
                Some("/dev/null is not a folder"),
                "{path}"
            );
        }
        let root = tempfile::tempdir().unwrap();
        let (target, link) = (root.path().join("target"), root.path().join("link"));
        create_dir_all(&target).unwrap();
        chmod(&target, 0o777);
        symlink(&target, &link).unwrap();
        let fault = others_can_write(&link).unwrap();
        assert!(fault.contains("other users can write to") && !fault.contains("chmod"), "{fault}");
    }

    #[test]
    fn other_users_cannot_write_to_new_folders() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        create_folder(&folder).unwrap();
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!((mode & 0o022, others_can_write(&folder)), (0, None));
    }
}
