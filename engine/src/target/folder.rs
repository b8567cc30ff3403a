//! Where a target runs: a fresh folder in the system's temporary place, and the end of those that
//! a throng that was killed could not clear up.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Most folders of one process at once.
const FOLDERS_MAX: u32 = 1_000;
/// Most entries of the temporary place that are looked at for what was left behind.
const ENTRIES_MAX: usize = 10_000;

/// A folder that is this process's while this value lives.
pub(super) struct TargetFolder {
    pub(super) path: PathBuf,
    /// Locked, so that nobody who cannot see this process takes the folder for abandoned.
    _lock: File,
}

impl TargetFolder {
    /// A fresh folder; those of dead processes are removed first. The error is advice.
    pub(super) fn make() -> Result<TargetFolder, String> {
        let base = std::env::temp_dir();
        clear_up(&base, is_alive);
        make_in(&base)
    }
}

fn make_in(base: &Path) -> Result<TargetFolder, String> {
    for attempt in 0..FOLDERS_MAX {
        let path = base.join(format!("throng-{}-{attempt}", std::process::id()));
        let wrong = |error: io::Error| format!("cannot make {}: {error}", path.display());
        match fs::create_dir(&path) {
            Ok(()) => {
                let lock = File::open(&path).map_err(wrong)?;
                if !lock_now(&lock) {
                    return Err(format!("{} was taken by somebody else", path.display()));
                }
                // A target that runs as another user must get in.
                let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o755));
                return Ok(TargetFolder { path, _lock: lock });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(wrong(error)),
        }
    }
    Err(format!("cannot make a fresh folder in {}", base.display()))
}

/// Removes what killed throngs of this user have left: folders `throng-PID-N` of processes that are
/// no more, and that nobody holds.
fn clear_up(base: &Path, is_alive: impl Fn(u32) -> bool) {
    let entries = fs::read_dir(base).into_iter().flatten().take(ENTRIES_MAX).flatten();
    for entry in entries {
        let pid = entry.file_name().to_str().and_then(pid_of);
        let is_ours = || entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == user());
        if pid.is_none_or(&is_alive) || !is_ours() {
            continue;
        }
        let path = entry.path();
        if File::open(&path).is_ok_and(|folder| lock_now(&folder)) {
            // What cannot be removed lies in the system's temporary place.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// The process that a folder was made by: `throng-PID-N`.
fn pid_of(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("throng-")?.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (is_number(pid) && is_number(number)).then(|| pid.parse().ok())?
}

/// Also true of what another user's process is: all there are to be seen.
fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn user() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Takes a lock that ends with the process, unless somebody has it.
fn lock_now(folder: &File) -> bool {
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_the_dead_that_nobody_holds_are_removed() {
        const DEAD: u32 = 77;
        let base = std::env::temp_dir().join(format!("throng-folders-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let mine = make_in(&base).unwrap();
        let held = base.join("throng-77-9");
        for name in ["throng-77-0/0", "throng-78-0", "throng-77", "throng-77-x", "other-77-0"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::create_dir(&held).unwrap();
        fs::write(base.join("throng-77-0/0/file"), "x").unwrap();
        fs::write(base.join("throng-77-1"), "not a folder").unwrap();
        std::os::unix::fs::symlink(base.join("other-77-0"), base.join("throng-77-2")).unwrap();
        let lock = File::open(&held).unwrap();
        assert!(lock_now(&lock));
        let names = || {
            let entries = fs::read_dir(&base).unwrap().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let before = names();
        clear_up(&base, |pid| pid != DEAD);
        let stays: Vec<String> = before.into_iter().filter(|name| name != "throng-77-0").collect();
        assert_eq!(names(), stays);
        assert!(stays.iter().any(|name| mine.path.ends_with(name)));
        // Even from where this process is not to be seen, its folder is held; afterwards not.
        clear_up(&base, |_| false);
        assert!(mine.path.exists() && !base.join("throng-78-0").exists());
        drop(lock);
        clear_up(&base, |pid| pid != DEAD);
        assert!(!held.exists());
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn names_are_read_exactly() {
        for (name, pid) in [
            ("throng-12-3", Some(12)),
            ("throng-12", None),
            ("throng--3", None),
            ("throng-12-", None),
            ("throng-12-3-4", None),
            ("throng-+1-3", None),
            ("throng-99999999999-3", None),
            ("throng-prepare-12", None),
        ] {
            assert_eq!(pid_of(name), pid, "{name}");
        }
        assert!(is_alive(std::process::id()) && !is_alive(u32::MAX));
    }
}
