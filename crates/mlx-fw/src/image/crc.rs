//! The two CRCs of firmware images. Both come from the polynomial 0x100B.

#![expect(
    clippy::indexing_slicing,
    reason = "tables of 256 entries, indexed by a byte"
)]

/// The polynomial, most significant bit first.
const POLY: u16 = 0x100b;

/// How many bytes [`sw`] takes at a time.
const SLICES: usize = 16;

/// `TABLES[k][b]` is what the byte `b` contributes when `k` more bytes follow it.
static TABLES: [[u16; 256]; SLICES] = tables();

const fn tables() -> [[u16; 256]; SLICES] {
    let mut tables = [[0; 256]; SLICES];
    let mut byte = 0_u16;
    while byte < 256 {
        let mut value = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x8000 != 0 {
                (value << 1) ^ POLY
            } else {
                value << 1
            };
            bit += 1;
        }
        tables[0][byte as usize] = value;
        byte += 1;
    }
    let mut slice = 1;
    while slice < SLICES {
        let mut byte = 0;
        while byte < 256 {
            let value = tables[slice - 1][byte];
            tables[slice][byte] = (value << 8) ^ tables[0][(value >> 8) as usize];
            byte += 1;
        }
        slice += 1;
    }
    tables
}

/// The register before the first byte. The specification feeds the message through the low end of
/// a register of ones, and 16 zero bits after it; that equals the usual form, which needs no zero
/// bits after, with this start.
const START: u16 = {
    let mut value = 0xffff_u16;
    let mut bit = 0;
    while bit < 16 {
        value = if value & 0x8000 != 0 {
            (value << 1) ^ POLY
        } else {
            value << 1
        };
        bit += 1;
    }
    value
};

/// The CRC of nearly everything in an image: sections, tables, BOOT2.
///
/// ```
/// use mlx_fw::image::crc;
/// assert_eq!(crc::sw(&[]), 0x0955);
/// assert_eq!(crc::sw(&[1, 2, 3, 4]), 0x05ea);
/// ```
#[must_use]
#[doc(alias = "CalcImageCRC")]
pub fn sw(bytes: &[u8]) -> u16 {
    let mut crc = START;
    let (blocks, rest) = bytes.as_chunks::<SLICES>();
    for block in blocks {
        let mut next = 0;
        let [high, low] = crc.to_be_bytes();
        let mut block = *block;
        block[0] ^= high;
        block[1] ^= low;
        for (at, byte) in block.into_iter().enumerate() {
            next ^= TABLES[SLICES - 1 - at][usize::from(byte)];
        }
        crc = next;
    }
    for &byte in rest {
        let [high, low] = crc.to_be_bytes();
        crc = (u16::from(low) << 8) ^ TABLES[0][usize::from(high ^ byte)];
    }
    crc ^ 0xffff
}

/// The CRC of an entry of the FS4 hardware pointers: over the pointer and the upper half of the
/// dword that carries the CRC.
///
/// ```
/// use mlx_fw::image::crc;
/// assert_eq!(crc::hw([0, 0, 0x10, 0, 0, 0]), 0xeb67);
/// ```
#[must_use]
#[doc(alias = "calc_hw_crc")]
pub fn hw(bytes: [u8; 6]) -> u16 {
    const REFLECTED: u16 = POLY.reverse_bits();
    let mut crc = 0xffff_u16;
    for (at, byte) in bytes.into_iter().enumerate() {
        crc ^= u16::from(if at < 2 { !byte } else { byte });
        for _ in 0..8 {
            crc = if crc & 1 != 0 {
                (crc >> 1) ^ REFLECTED
            } else {
                crc >> 1
            };
        }
    }
    crc.swap_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    /// Word for word what the specification says, slowly.
    fn reference(bytes: &[u8]) -> u16 {
        let mut crc = 0xffff_u16;
        let mut feed = |bit: u16| {
            crc = if crc & 0x8000 != 0 {
                ((crc << 1) | bit) ^ 0x100b
            } else {
                (crc << 1) | bit
            };
        };
        for byte in bytes {
            for bit in (0..8).rev() {
                feed(u16::from(byte >> bit) & 1);
            }
        }
        for _ in 0..16 {
            feed(0);
        }
        crc ^ 0xffff
    }

    #[test]
    fn known_vectors() {
        assert_eq!(super::sw(&[0; 4]), 0x0009);
        let counting: Vec<u8> = (0..0x20).collect();
        assert_eq!(super::sw(&counting), 0x8c28);
        for (bytes, crc) in [
            ([0, 0, 0x10, 0, 0, 0], 0xeb67),
            ([0, 0, 0x01, 0, 0, 0], 0x75f8),
            ([0, 0, 0x40, 0, 0, 0], 0xbd3f),
            ([0, 0, 0x05, 0, 0, 0], 0x8359),
            ([0; 6], 0),
        ] {
            assert_eq!(super::hw(bytes), crc, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn the_fast_form_equals_the_specified_one(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(super::sw(&bytes), reference(&bytes));
        }
    }
}
