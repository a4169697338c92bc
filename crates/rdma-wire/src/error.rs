//! What can be wrong with bytes.

/// Why bytes could not be read. Offsets count from the start of what was being read, which for a
/// file is the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end too soon.
    #[error(
        "{what} is cut short: at offset {offset:#x} it needs {needed} bytes, and {had} are there"
    )]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// How many bytes it takes.
        needed: usize,
        /// How many there were.
        had: usize,
    },
    /// A field has a value that it must not have.
    #[error("{what} at offset {offset:#x} is {value:#x}, not {expected}")]
    Invalid {
        /// The field.
        what: &'static str,
        /// Where it stands.
        offset: u64,
        /// What was found.
        value: u64,
        /// What would have been right.
        expected: &'static str,
    },
}

/// A result of reading bytes.
pub type Result<T, E = DecodeError> = core::result::Result<T, E>;

impl DecodeError {
    /// [`DecodeError::Truncated`].
    #[must_use]
    pub const fn truncated(what: &'static str, offset: u64, needed: usize, had: usize) -> Self {
        Self::Truncated {
            what,
            offset,
            needed,
            had,
        }
    }

    /// [`DecodeError::Invalid`].
    #[must_use]
    pub const fn invalid(
        what: &'static str,
        offset: u64,
        value: u64,
        expected: &'static str,
    ) -> Self {
        Self::Invalid {
            what,
            offset,
            value,
            expected,
        }
    }

    /// The same error, with its offset counted from `base` bytes earlier: for bytes that were cut
    /// out of something larger.
    #[must_use]
    pub const fn at(mut self, base: u64) -> Self {
        match &mut self {
            Self::Truncated { offset, .. } | Self::Invalid { offset, .. } => {
                *offset = offset.saturating_add(base);
            }
        }
        self
    }

    /// Where the trouble starts.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        match self {
            Self::Truncated { offset, .. } | Self::Invalid { offset, .. } => *offset,
        }
    }
}
