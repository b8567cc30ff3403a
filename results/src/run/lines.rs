//! Lines of a file that grows while it is read or was cut off in the middle of one.

use crate::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Longest line accepted, bytes: some fifty times the widest row we write.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;

/// Reads whole lines; a last line without its line end was torn by a crash and is left out.
pub(crate) struct Lines {
    path: PathBuf,
    reader: Option<BufReader<File>>,
    buffer: Vec<u8>,
    number: usize,
    torn: bool,
}

impl Lines {
    /// Opens a file; one that does not exist has no lines.
    pub(crate) fn open(path: &Path) -> Result<Lines, Error> {
        let reader = match File::open(path) {
            Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(path)(error)),
        };
        Ok(Lines { path: path.to_owned(), reader, buffer: Vec::new(), number: 0, torn: false })
    }

    /// The next line with its number (from one), without its line end.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, &str)>, Error> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        self.buffer.clear();
        let limit = LINE_BYTES_MAX as u64 + 1;
        let mut bounded = reader.take(limit);
        bounded.read_until(b'\n', &mut self.buffer).map_err(Error::io(&self.path))?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.last() != Some(&b'\n') {
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(self.corrupt(format!("longer than {LINE_BYTES_MAX} bytes")));
            }
            self.torn = true;
            self.reader = None;
            return Ok(None);
        }
        self.buffer.pop();
        match std::str::from_utf8(&self.buffer) {
            Ok(line) => Ok(Some((self.number, line))),
            Err(_) => Err(self.corrupt("not UTF-8")),
        }
    }

    /// Whether the file ended in the middle of a line.
    pub(crate) fn torn(&self) -> bool {
        self.torn
    }

    fn corrupt(&self, reason: impl std::fmt::Display) -> Error {
        Error::corrupt(&self.path, self.number, reason)
    }
}
