//! What `perf script` prints, and what `py-spy` writes, as folded stacks.

use super::fold::Folds;
use std::io::{self, BufRead, Read};

/// Longest line, bytes; a longer one is cut.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// Most functions of one sample that are kept while it is read.
const FRAMES_MAX: usize = 512;
/// How `perf` calls what it has no name for.
const UNKNOWN: &str = "[unknown]";

/// Folds what `perf script -F comm,pid,ip,sym,dso` prints. The root of every stack is the name of
/// its thread; functions of the kernel end in `_[k]`, as flame graphs have it.
pub(super) fn perf(input: impl BufRead) -> io::Result<Folds> {
    let mut folds = Folds::default();
    let mut thread: Option<String> = None;
    let mut frames: Vec<String> = Vec::new();
    let mut end = |thread: &mut Option<String>, frames: &mut Vec<String>| {
        if let Some(thread) = thread.take() {
            let root = std::iter::once(thread.as_str());
            folds.add(root.chain(frames.iter().rev().map(String::as_str)), 1);
        }
        frames.clear();
    };
    lines(input, |line| {
        if line.trim().is_empty() {
            end(&mut thread, &mut frames);
        } else if !line.starts_with(char::is_whitespace) || thread.is_none() {
            end(&mut thread, &mut frames);
            let name = line.trim().rsplit_once(char::is_whitespace);
            thread = Some(name.map_or(line, |(name, _)| name).trim().to_owned());
        } else if frames.len() < FRAMES_MAX {
            // A stripped program that calls itself is one riddle, not many.
            let next = frame(line);
            frames.extend(next.filter(|next| !(is_riddle(next) && frames.last() == Some(next))));
        }
    })?;
    end(&mut thread, &mut frames);
    Ok(folds)
}

/// Whether a name stands for functions that have none.
fn is_riddle(name: &str) -> bool {
    name.starts_with('[')
}

/// A line of a stack: address, function, and the file it is from in parentheses.
fn frame(line: &str) -> Option<String> {
    let (_, rest) = line.trim().split_once(' ')?;
    let cut = [" (/", " ([", " ("].iter().find_map(|mark| rest.rfind(mark));
    let (name, file) = match cut {
        Some(cut) => (&rest[..cut], rest[cut + 2..].trim_end_matches(')')),
        None => (rest, ""),
    };
    let is_kernel = file.starts_with("[kernel")
        || file.starts_with('[') && file.ends_with("_text")
        || file.ends_with(".ko");
    let end = if is_kernel { "_[k]" } else { "" };
    if name.trim() != UNKNOWN {
        return Some(format!("{}{end}", script_function(name.trim())));
    }
    let file = file.trim_matches(['[', ']']).rsplit('/').next().unwrap_or("");
    Some(format!("[{}]{end}", if file.is_empty() { "unknown" } else { file }))
}

/// The name of a function that Node has compiled: without its kind and how far it is optimized, so
/// that it stays one function, and without the folders of its file.
fn script_function(name: &str) -> String {
    const KINDS: [&str; 5] = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
    let Some(rest) = KINDS.iter().find_map(|kind| name.strip_prefix(kind)) else {
        return name.to_owned();
    };
    let rest = rest.trim_start_matches(['*', '~', '^', '+']);
    match rest.split_once(' ') {
        Some((function, place)) => {
            let file = place.rsplit('/').next().unwrap_or(place);
            let function = if function.is_empty() { "(anonymous)" } else { function };
            format!("{function} {file}")
        }
        None => rest.to_owned(),
    }
}

/// Folds what `py-spy record --format raw` writes; the process's name becomes the root.
pub(super) fn py_spy(input: impl BufRead, process: &str, folds: &mut Folds) -> io::Result<()> {
    lines(input, |line| {
        let Some((stack, count)) = line.trim().rsplit_once(' ') else { return };
        let Ok(count) = count.parse() else { return };
        folds.add(std::iter::once(process).chain(stack.split(';')), count);
    })
}

/// Every line of an input, as far as it is text.
fn lines(mut input: impl BufRead, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            input.skip_until(b'\n')?;
        }
        take(&String::from_utf8_lossy(&line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Rng;

    const PRINTED: &str = "\
throng  7496 
\tffffffff822010c9 _raw_spin_unlock ([kernel.kallsyms])
\tffffffff81000130 entry_SYSCALL_64 ([kernel.kallsyms])
\t          10aba4 __send (/usr/lib/libc.so.6)
\t          6ffa82 <A as B<(x)>>::end (a, b) (/opt/my server/throng (deleted))

node worker 12 
\t     7f00 LazyCompile:*say /srv/app/room.js:10:5 (/tmp/perf-12.map)
\t     7f01 JS:~ file:///srv/app/main.js:1:1 (/tmp/perf-12.map)
\t     7f02 [unknown] (/usr/lib/libuv.so)
\t     7f05 [unknown] (/usr/lib/libuv.so)
\t     7f03 [unknown] ([unknown])

node worker 12 
\t     7f09 JS:~say /srv/app/room.js:10:5 (/tmp/perf-12.map)
";

    #[test]
    fn what_perf_prints_is_folded() {
        let folds = perf(PRINTED.as_bytes()).unwrap();
        assert_eq!(
            folds.text(),
            "node worker;[unknown];[libuv.so];(anonymous) main.js:1:1;say room.js:10:5 1\n\
             node worker;say room.js:10:5 1\n\
             throng;<A as B<(x)>>::end (a, b);__send;entry_SYSCALL_64_[k];_raw_spin_unlock_[k] 1\n"
        );
    }

    #[test]
    fn what_py_spy_writes_is_folded() {
        let mut folds = Folds::default();
        let text = "main (app.py:3);say (room.py:9) 12\nmain (app.py:3) 3\n\nnonsense\na b\n";
        py_spy(text.as_bytes(), "python3", &mut folds).unwrap();
        let want = "python3;main (app.py:3) 3\npython3;main (app.py:3);say (room.py:9) 12\n";
        assert_eq!(folds.text(), want);
    }

    #[test]
    fn nothing_printed_makes_it_panic() {
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed, 0x9E_2F);
            let mut bytes = PRINTED.as_bytes().to_vec();
            for _ in 0..=rng.below(8) {
                let at = rng.below(bytes.len() as u64) as usize;
                match rng.below(3) {
                    0 => bytes[at] = rng.below(256) as u8,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, *b" ()[]\n\t/"[..].get(rng.below(8) as usize).unwrap()),
                }
            }
            let text = perf(bytes.as_slice()).unwrap().text();
            assert!(text.lines().all(|line| line.rsplit_once(' ').is_some()), "seed {seed}");
        }
        let long = format!("a 1\n\t1 {} (/x)\n", "y".repeat(1 << 20));
        assert!(perf(long.as_bytes()).unwrap().text().len() < 1_000);
    }
}
