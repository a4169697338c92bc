//! The PSID: which board a firmware is configured for.

use std::fmt;

/// A parameter-set id, the name of a board's configuration, such as `MT_0000000013`.
///
/// At most 16 bytes. Bytes that are not printable ASCII print as `.`.
///
/// ```
/// use mlx_fw::Psid;
/// let psid = Psid::from_bytes(*b"MT_0000000013\0\0\0");
/// assert_eq!(psid.to_string(), "MT_0000000013");
/// assert_eq!(Psid::new("MT_0000000013"), Some(psid));
/// assert_eq!(Psid::new("far too long for a PSID"), None);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Psid([u8; 16]);

impl Psid {
    /// A PSID from its text, unless that is empty or longer than 16 bytes.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        let place = bytes.get_mut(..text.len())?;
        if text.is_empty() {
            return None;
        }
        place.copy_from_slice(text.as_bytes());
        Some(Self(bytes))
    }

    /// A PSID as it stands in an image: what follows a NUL does not count.
    #[must_use]
    pub fn from_bytes(mut bytes: [u8; 16]) -> Self {
        let mut over = false;
        for byte in &mut bytes {
            over |= *byte == 0;
            if over {
                *byte = 0;
            }
        }
        Self(bytes)
    }

    /// A PSID from at most 16 bytes; more are cut off.
    #[must_use]
    pub fn from_prefix(bytes: &[u8]) -> Self {
        let mut all = [0; 16];
        for (place, byte) in all.iter_mut().zip(bytes) {
            *place = *byte;
        }
        Self::from_bytes(all)
    }

    /// The bytes, padded with NUL.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        let [first, ..] = self.0;
        first == 0
    }

    /// How many single-character edits lie between the two, to find what was meant.
    #[must_use]
    pub fn distance(self, other: Self) -> usize {
        let (a, b) = (self.to_string(), other.to_string());
        let b: Vec<char> = b.chars().collect();
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, from) in a.chars().enumerate() {
            let mut diagonal = i;
            let mut left = i + 1;
            let mut next = vec![left];
            for (to, &above) in b.iter().zip(row.iter().skip(1)) {
                let cost = usize::from(from != *to);
                left = (diagonal + cost).min(above + 1).min(left + 1);
                diagonal = above;
                next.push(left);
            }
            row = next;
        }
        row.last().copied().unwrap_or(0)
    }
}

impl fmt::Display for Psid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self
            .0
            .iter()
            .take_while(|byte| **byte != 0)
            .map(|&byte| match byte {
                0x20..=0x7e => char::from(byte),
                _ => '.',
            })
            .collect();
        f.pad(&text)
    }
}

impl fmt::Debug for Psid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psid({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        let psid = |text| Psid::new(text).expect("short enough");
        let a = psid("MT_0000000013");
        for (other, distance) in [
            ("MT_0000000013", 0),
            ("MT_0000000012", 1),
            ("MT_000000013", 1),
            ("MT_00000000131", 1),
            ("IBM0000000013", 3),
            ("X", 13),
        ] {
            assert_eq!(a.distance(psid(other)), distance, "{other}");
        }
    }

    #[test]
    fn nothing_after_a_nul_counts() {
        assert_eq!(
            Psid::from_bytes(*b"A\0BBBBBBBBBBBBBB"),
            Psid::from_prefix(b"A")
        );
        assert!(Psid::from_bytes([0; 16]).is_empty());
    }
}
