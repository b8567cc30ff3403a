//! An append-only log of encoded frames, read by cursors that are byte offsets since the beginning.

/// Spare memory an empty log may keep, in bytes.
const SPARE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes from `base` to `end`; what lies before `base` every reader has passed.
#[derive(Debug, Default)]
pub(crate) struct Log {
    base: u64,
    bytes: Vec<u8>,
}

impl Log {
    /// The offset behind the last byte: where a reader starts that wants only what is to come.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Everything from `from` up to `to`.
    pub(crate) fn between(&self, from: u64, to: u64) -> &[u8] {
        debug_assert!(self.base <= from && from <= to && to <= self.end());
        &self.bytes[(from - self.base) as usize..(to - self.base) as usize]
    }

    /// Where to append whole frames.
    pub(crate) fn tail(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes held.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets what lies before `cursor`; when much is left it waits, so that moving stays cheap.
    pub(crate) fn trim(&mut self, cursor: u64) {
        let passed = (cursor.min(self.end()) - self.base) as usize;
        if passed * 2 < self.bytes.len() || passed == 0 {
            return;
        }
        self.bytes.drain(..passed);
        self.base += passed as u64;
        if self.bytes.capacity() > SPARE_BYTES_MAX.max(2 * self.bytes.len()) {
            self.bytes.shrink_to(SPARE_BYTES_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Log {
        fn since(&self, cursor: u64) -> &[u8] {
            self.between(cursor, self.end())
        }
    }

    #[test]
    fn offsets_stay_valid_while_the_beginning_goes() {
        let mut log = Log::default();
        log.tail().extend_from_slice(b"0123456789");
        log.trim(3); // too little to be worth moving
        assert_eq!((log.len(), log.since(3)), (10, &b"3456789"[..]));
        log.trim(6);
        assert_eq!((log.len(), log.since(6)), (4, &b"6789"[..]));
        log.tail().extend_from_slice(b"ab");
        assert_eq!((log.since(9), log.end()), (&b"9ab"[..], 12));
        assert_eq!(log.between(8, 10), b"89");
        log.trim(12);
        assert_eq!((log.len(), log.since(12), log.end()), (0, &b""[..], 12));
    }
}
