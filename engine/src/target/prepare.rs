//! What a target needs to have made before it can be started, once: into a cached folder that is
//! named by what it is made of.

use super::launch::tail;
use super::spec::{Spec, fill};
use crate::clock::Clock;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often a preparation is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Written last: without it what is there is not whole.
const DONE: &str = ".prepared";

/// Where everything is cached: `$THRONG_CACHE`, or `throng` in the user's cache.
fn base() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    variable("THRONG_CACHE")
        .or(variable("XDG_CACHE_HOME").map(|folder| folder.join("throng")))
        .or(variable("HOME").map(|folder| folder.join(".cache/throng")))
        .unwrap_or_else(|| std::env::temp_dir().join("throng-cache"))
}

/// A number for bytes that is the same everywhere (FNV-1a).
fn digest(parts: &[Vec<u8>]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    parts.iter().fold(start, |sum, part| part.iter().chain(&[0xff]).fold(sum, step))
}

/// Makes what the target needs, unless it is there; gives back where. The error is advice.
pub(super) fn prepare(spec: &Spec, clock: &Clock) -> Result<Option<PathBuf>, String> {
    let Some(prepare) = &spec.prepare else { return Ok(None) };
    let name = spec.folder.file_name().map_or("target".into(), |name| name.to_string_lossy());
    let mut parts: Vec<Vec<u8>> = prepare.command.iter().map(|word| word.clone().into()).collect();
    for file in &prepare.files {
        let path = spec.folder.join(file);
        parts.push(fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    let folder = base().join(format!("{name}-{:016x}", digest(&parts)));
    let wrong = |error: std::io::Error| format!("cannot prepare {}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(wrong)?;
    let lock = folder.join(".lock");
    let lock = OpenOptions::new().create(true).append(true).open(lock).map_err(wrong)?;
    // SAFETY: the descriptor is open. Another throng that is at it is waited for; its time is
    // limited like ours.
    unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX) };
    if folder.join(DONE).exists() {
        return Ok(Some(folder));
    }
    for file in &prepare.files {
        fs::copy(spec.folder.join(file), folder.join(file)).map_err(wrong)?;
    }
    let (program, arguments) = prepare.command.split_first().ok_or("`prepare.command` is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&folder);
    carry_out(&mut command, &folder.join("prepare.log"), prepare.within, clock)
        .map_err(|why| format!("what the target needs could not be prepared {why}"))?;
    File::create(folder.join(DONE)).map_err(wrong)?;
    Ok(Some(folder))
}

/// A command of the target: in its folder, as its user, with its environment.
pub(super) fn command(
    spec: &Spec,
    words: &[String],
    blanks: &BTreeMap<String, String>,
    folder: &Path,
    owner: Option<(u32, u32)>,
) -> Result<Command, String> {
    let words: Vec<String> =
        words.iter().map(|word| fill(word, blanks)).collect::<Result<_, _>>()?;
    let (program, arguments) = words.split_first().ok_or("a `command` in target.yaml is empty")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    for (name, value) in &spec.env {
        command.env(name, fill(value, blanks)?);
    }
    if let Some((uid, gid)) = owner {
        command.uid(uid).gid(gid);
    }
    Ok(command)
}

/// Carries out a command to its end; what it prints is in `log`. The error is how it ended, with
/// its last words.
pub(super) fn carry_out(
    command: &mut Command,
    log: &Path,
    within: Duration,
    clock: &Clock,
) -> Result<(), String> {
    let output = File::create(log).map_err(|error| error.to_string())?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    let mut child =
        command.stdin(Stdio::null()).stdout(output).stderr(errors).spawn().map_err(|error| {
            let program = command.get_program().to_string_lossy();
            format!("(cannot start `{program}`: {error})")
        })?;
    let deadline = clock.now() + within;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status.to_string();
        }
        if clock.now() > deadline {
            // It had its time.
            let _ = child.kill();
            let _ = child.wait();
            break format!("it was not ready within {} s", within.as_secs());
        }
        std::thread::sleep(LOOK_EVERY);
    };
    match status.as_str() {
        "exit status: 0" => Ok(()),
        status => Err(format!("({status}). Last words:\n{}", tail(log).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_says_why_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("throng-prepare-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let clock = Clock::start();
        let run = |text: &str, ms| {
            let mut command = Command::new("sh");
            command.args(["-c", text]);
            carry_out(&mut command, &folder.join("log"), Duration::from_millis(ms), &clock)
        };
        assert_eq!(run("exit 0", 10_000), Ok(()));
        let error = run("echo no luck; exit 3", 10_000).unwrap_err();
        assert!(error.contains("no luck") && error.contains('3'), "{error}");
        let error = run("exec sleep 30", 1).unwrap_err();
        assert!(error.contains("not ready within"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn another_content_is_another_folder() {
        let one = digest(&[b"a".to_vec(), b"b".to_vec()]);
        assert_ne!(one, digest(&[b"ab".to_vec()]));
        assert_eq!(one, digest(&[b"a".to_vec(), b"b".to_vec()]));
    }
}
