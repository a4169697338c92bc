//! Reading one thing after another, with the offset always known.

use bytemuck::AnyBitPattern;

use crate::{Be16, Be32, Be64, DecodeError, Result, prefix};

/// Reads forward through bytes. Every error names what was read and its offset.
///
/// ```
/// use rdma_wire::{Be32, Reader};
///
/// let mut reader = Reader::new(&[0, 0, 0, 7, 1, 2]);
/// assert_eq!(reader.read::<Be32>("length")?.get(), 7);
/// assert_eq!(reader.offset(), 4);
/// let error = reader.read::<Be32>("ITOC entry").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "ITOC entry is cut short: at offset 0x4 it needs 4 bytes, and 2 are there",
/// );
/// # Ok::<(), rdma_wire::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`, at offset 0.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            offset: 0,
        }
    }

    /// Reads from the start of `bytes`, which stand at `offset` of something larger.
    #[must_use]
    pub const fn at(bytes: &'a [u8], offset: u64) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }

    /// Where the next byte stands.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// How many bytes are left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Whether nothing is left.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What is left, without moving on.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Views the next bytes as a `T`.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn read<T: AnyBitPattern>(&mut self, what: &'static str) -> Result<&'a T> {
        let (value, rest) = prefix(what, self.rest).map_err(|error| error.at(self.offset))?;
        self.advance(size_of::<T>(), rest);
        Ok(value)
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn bytes(&mut self, what: &'static str, len: usize) -> Result<&'a [u8]> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(DecodeError::truncated(
                what,
                self.offset,
                len,
                self.rest.len(),
            ));
        };
        self.advance(len, rest);
        Ok(head)
    }

    /// Passes over `len` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn skip(&mut self, what: &'static str, len: usize) -> Result<()> {
        self.bytes(what, len).map(drop)
    }

    /// Passes over bytes until the offset is a multiple of `alignment`; at the end, stops there.
    ///
    /// An `alignment` of 0 or 1 does nothing.
    pub fn align(&mut self, alignment: u64) {
        let past = self.offset.checked_rem(alignment).unwrap_or_default();
        if past != 0 {
            let pad = usize::try_from(alignment - past)
                .unwrap_or(usize::MAX)
                .min(self.rest.len());
            let rest = self.rest.get(pad..).unwrap_or_default();
            self.advance(pad, rest);
        }
    }

    /// A reader of the next `len` bytes alone, which keeps the offsets; this one moves past them.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn sub(&mut self, what: &'static str, len: usize) -> Result<Self> {
        let offset = self.offset;
        self.bytes(what, len).map(|bytes| Self::at(bytes, offset))
    }

    /// The next byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn u8(&mut self, what: &'static str) -> Result<u8> {
        self.read::<u8>(what).copied()
    }

    /// The next 16 bits, big-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn u16(&mut self, what: &'static str) -> Result<u16> {
        self.read::<Be16>(what).map(|value| value.get())
    }

    /// The next 32 bits, big-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.read::<Be32>(what).map(|value| value.get())
    }

    /// The next 64 bits, big-endian.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]; the reader does not move.
    pub fn u64(&mut self, what: &'static str) -> Result<u64> {
        self.read::<Be64>(what).map(|value| value.get())
    }

    const fn advance(&mut self, by: usize, rest: &'a [u8]) {
        self.rest = rest;
        self.offset = self.offset.saturating_add(by as u64);
    }
}
