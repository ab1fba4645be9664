/// The table in which a [`Journal`](super::Journal) is kept, with those of other keys. Made with the first entry.
///
/// Names are written into SQL as they are: plain identifiers of letters, digits and `_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    pub(super) name: &'static str,
    pub(super) key: &'static str,
    pub(super) bytes: &'static str,
}

impl Table {
    /// A table with the columns `journal` (the key, text), `seq`, `at`, `total`, `epoch`, `kind` and `bytes`. By convention
    /// the names of a library's tables begin with `_`.
    pub const fn new(name: &'static str) -> Self {
        Self { name, key: "journal", bytes: "bytes" }
    }

    /// Other names for the columns of the key and of the bytes.
    #[must_use]
    pub const fn columns(self, key: &'static str, bytes: &'static str) -> Self {
        Self { key, bytes, ..self }
    }
}
