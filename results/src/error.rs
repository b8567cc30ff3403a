//! What can go wrong with a run directory, in words that name the file and the line.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A run directory could not be written, read or drawn.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is a run in that directory already.
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// A file does not hold what it should.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Line, counted from one; zero for the file as a whole.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A template of ours is broken.
    Template {
        /// What is wrong.
        reason: String,
    },
}

impl Error {
    /// An error of the operating system at `path`; to be used with `map_err`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
        |source| Error::Io { path: path.to_owned(), source }
    }

    /// Line `line` of `path` (zero: the whole file) is not what it should be.
    pub(crate) fn corrupt(path: &Path, line: usize, reason: impl fmt::Display) -> Error {
        Error::Corrupt { path: path.to_owned(), line, reason: reason.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Exists { path } => write!(
                f,
                "{}: there is something already; a run directory is never overwritten, name another",
                path.display()
            ),
            Error::Corrupt { path, line: 0, reason } => write!(f, "{}: {reason}", path.display()),
            Error::Corrupt { path, line, reason } => {
                write!(f, "{}, line {line}: {reason}", path.display())
            }
            Error::Template { reason } => write!(f, "report template: {reason}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
