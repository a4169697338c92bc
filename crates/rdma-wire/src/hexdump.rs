//! Bytes for people.

use core::fmt;

/// Prints bytes as a hexdump: offset, sixteen bytes in groups of four, their characters.
///
/// ```
/// use rdma_wire::Hexdump;
/// assert_eq!(
///     Hexdump::at(b"MTFW\x8c\xdf", 0x40).to_string(),
///     "00000040  4d544657 8cdf                        MTFW..\n",
/// );
/// ```
#[derive(Clone, Copy)]
pub struct Hexdump<'a> {
    bytes: &'a [u8],
    base: u64,
}

impl<'a> Hexdump<'a> {
    /// Offsets count from 0.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, base: 0 }
    }

    /// Offsets count from `base`.
    #[must_use]
    pub const fn at(bytes: &'a [u8], base: u64) -> Self {
        Self { bytes, base }
    }
}

impl fmt::Display for Hexdump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, row) in self.bytes.chunks(16).enumerate() {
            write!(f, "{:08x}  ", self.base.wrapping_add(line as u64 * 16))?;
            for column in 0..16 {
                match row.get(column) {
                    Some(byte) => write!(f, "{byte:02x}")?,
                    None => f.write_str("  ")?,
                }
                if column % 4 == 3 {
                    f.write_str(" ")?;
                }
            }
            f.write_str(" ")?;
            for &byte in row {
                let shown = if byte == b' ' || byte.is_ascii_graphic() {
                    char::from(byte)
                } else {
                    '.'
                };
                write!(f, "{shown}")?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Hexdump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
