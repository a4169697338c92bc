//! CRC-32 of Ethernet, in two ways: which is faster depends on the machine.
//!
//! Real processors multiply polynomials in an instruction, ten times as fast as tables. An emulator does
//! the instruction bit by bit, and tables are twice as fast there.

use core::sync::atomic::{AtomicBool, Ordering};

use crc32fast::Hasher;

/// Which way [`update`] takes. Both give the same sums.
static BY_TABLES: AtomicBool = AtomicBool::new(false);

/// Takes tables from now on, or the processor's instructions where it has them.
pub fn prefer_tables(tables: bool) {
    BY_TABLES.store(tables, Ordering::Relaxed);
}

/// The sum of what had the sum `sum`, followed by `bytes`.
#[must_use]
pub fn update(sum: u32, bytes: &[u8]) -> u32 {
    if BY_TABLES.load(Ordering::Relaxed) {
        by_tables(sum, bytes)
    } else {
        by_instructions(sum, bytes)
    }
}

/// [`update`] by the processor's instructions.
#[must_use]
pub fn by_instructions(sum: u32, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(sum);
    hasher.update(bytes);
    hasher.finalize()
}

/// The reflected polynomial.
pub(super) const POLY: u32 = 0xedb8_8320;

/// `TABLES[k][b]`: what byte `b` does to the sum when `k` bytes follow it.
static TABLES: [[u32; 256]; 16] = tables();

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "computed by the compiler, which sees every index"
)]
const fn tables() -> [[u32; 256]; 16] {
    let mut tables = [[0; 256]; 16];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (POLY & 0u32.wrapping_sub(sum & 1));
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut follow = 1;
    while follow < 16 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[follow - 1][byte];
            tables[follow][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        follow += 1;
    }
    tables
}

/// [`update`] by tables, sixteen bytes at a time.
#[must_use]
#[expect(clippy::indexing_slicing, reason = "a byte is an index of 256 entries")]
pub fn by_tables(sum: u32, bytes: &[u8]) -> u32 {
    let (chunks, rest) = bytes.as_chunks::<16>();
    let mut sum = !sum;
    for chunk in chunks {
        let mut mixed = *chunk;
        for (byte, sum) in mixed.iter_mut().zip(sum.to_le_bytes()) {
            *byte ^= sum;
        }
        sum = mixed
            .iter()
            .zip(TABLES.iter().rev())
            .fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
    }
    for byte in rest {
        let [low, ..] = sum.to_le_bytes();
        sum = (sum >> 8) ^ TABLES[0][usize::from(low ^ byte)];
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_give_the_same_sum() {
        let bytes: Vec<u8> = (0..300_u32)
            .flat_map(|n| (n * n * 7919).to_le_bytes())
            .collect();
        assert_eq!(by_tables(0, b"123456789"), 0xcbf4_3926);
        for end in 0..bytes.len() {
            let (head, tail) = bytes[..end].split_at(end / 3);
            let sum = by_instructions(by_instructions(0, head), tail);
            assert_eq!(by_tables(by_tables(0, head), tail), sum, "{end} bytes");
        }
    }
}
