//! The folder of a server that keeps things: the database, the key of its tokens, and a lock.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const KEY_BYTES: usize = 32;

/// A data folder that nobody else serves from.
pub(crate) struct DataFolder {
    path: PathBuf,
    /// Locked as long as it is open.
    _lock: File,
}

impl DataFolder {
    /// Opens a folder, made if there is none, for this process alone.
    pub(crate) fn open(path: &Path) -> io::Result<DataFolder> {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))?;
        let file = path.join("lock");
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(&file);
        let lock = lock.map_err(at(&file))?;
        match lock.try_lock() {
            Ok(()) => {
                // The files that SQLite puts beside the database are as private as it is.
                let file = database(path);
                let make = OpenOptions::new().create(true).append(true).mode(0o600).open(&file);
                make.map_err(at(&file))?;
                Ok(DataFolder { path: path.to_owned(), _lock: lock })
            }
            Err(TryLockError::Error(error)) => Err(at(&file)(error)),
            Err(TryLockError::WouldBlock) => {
                let why = io::Error::new(io::ErrorKind::WouldBlock, "another server is using it");
                Err(at(path)(why))
            }
        }
    }

    /// Where the database is.
    pub(crate) fn database(&self) -> PathBuf {
        database(&self.path)
    }

    /// The key of tokens: made once, readable to its owner only.
    pub(crate) fn key(&self) -> io::Result<[u8; KEY_BYTES]> {
        let file = self.path.join("key");
        let key = match File::open(&file) {
            Ok(opened) => read_key(opened),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_key(&file),
            Err(error) => Err(error),
        };
        key.map_err(at(&file))
    }

    /// Writes a key under another name first, so that there is a whole one or none.
    fn make_key(&self, file: &Path) -> io::Result<[u8; KEY_BYTES]> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let partial = self.path.join("key.partial");
        let mut opened = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&partial)?;
        opened.write_all(&key)?;
        opened.sync_all()?;
        fs::rename(&partial, file)?;
        File::open(&self.path)?.sync_all()?;
        Ok(key)
    }
}

/// Where the database of a data folder is.
pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("yardstick.sqlite")
}

fn read_key(file: File) -> io::Result<[u8; KEY_BYTES]> {
    if file.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::other("others can read it: chmod 600, or delete it for a new one"));
    }
    let mut key = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut key)?;
    let wrong =
        |_| io::Error::other(format!("a key has {KEY_BYTES} bytes; delete it for a new one"));
    key.try_into().map_err(wrong)
}

/// Says with an error where it happened.
fn at(path: &Path) -> impl Fn(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |error| io::Error::new(error.kind(), format!("{path}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::store::tests::Scratch;

    #[test]
    fn one_server_a_folder_and_one_key_for_good() {
        let scratch = Scratch::new("folder");
        let path = scratch.path("deep/data");
        let folder = DataFolder::open(&path).unwrap();
        let refusal = DataFolder::open(&path).err().unwrap().to_string();
        assert!(refusal.contains("another server"), "{refusal}");
        let key = folder.key().unwrap();
        assert_eq!(fs::metadata(path.join("key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(folder.database()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(folder);
        let folder = DataFolder::open(&path).unwrap();
        assert_eq!(folder.key().unwrap(), key);
        assert_ne!(key, [0; KEY_BYTES]);
    }

    #[test]
    fn a_key_that_is_no_key_or_no_secret_is_refused() {
        let scratch = Scratch::new("key");
        let folder = DataFolder::open(&scratch.path("data")).unwrap();
        let file = scratch.path("data/key");
        for (bytes, mode, expect) in
            [(31, 0o600, "32 bytes"), (33, 0o600, "32 bytes"), (32, 0o640, "others can read")]
        {
            fs::write(&file, vec![1; bytes]).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let why = folder.key().unwrap_err().to_string();
            assert!(why.contains(expect) && why.contains("data/key"), "{why}");
        }
    }
}
