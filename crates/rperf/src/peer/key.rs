//! What one queue pair says of itself: perftest's `pingpong_dest`.

use core::fmt::Write as _;

use super::Error;

/// The bits of a packet sequence number.
pub const PSN_MASK: u32 = 0x00ff_ffff;

/// One queue pair and the memory that goes with it.
#[doc(alias = "pingpong_dest")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Key {
    /// LID of the port, 0 on Ethernet.
    pub lid: u16,
    /// Reads and atomic operations at a time that it answers.
    pub out_reads: u16,
    /// Number of the queue pair, 24 bits.
    pub qpn: u32,
    /// Number of its first packet, 24 bits.
    pub psn: u32,
    /// Key of its memory.
    pub rkey: u32,
    /// Address of its memory.
    pub vaddr: u64,
    /// GID, where packets carry one.
    pub gid: Option<[u8; 16]>,
    /// Number of the shared receive queue, 0 where none.
    pub srqn: u32,
}

impl Key {
    /// Bytes of the text without a GID, with its NUL.
    pub const SHORT: usize = 59;
    /// Bytes of the text with a GID, with its NUL.
    pub const LONG: usize = 108;

    /// How many bytes the text has.
    #[must_use]
    pub const fn len(gid: bool) -> usize {
        if gid { Self::LONG } else { Self::SHORT }
    }

    /// The text, with its NUL.
    #[must_use]
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = format!(
            "{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:",
            self.lid,
            self.out_reads,
            self.qpn & PSN_MASK,
            self.psn & PSN_MASK,
            self.rkey,
            self.vaddr
        );
        for byte in self.gid.into_iter().flatten() {
            let _ = write!(text, "{byte:02x}:");
        }
        let _ = write!(text, "{:08x}", self.srqn);
        if self.gid.is_some() {
            text.push(':');
        }
        text.push('\0');
        text.into_bytes()
    }

    /// From the text, whose length says whether there is a GID.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] with the field and where it begins.
    pub fn from_text(text: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields { text, at: 0 };
        let mut key = Self {
            lid: fields.number("lid", 4)?,
            out_reads: fields.number("out_reads", 4)?,
            qpn: fields.number("qpn", 6)?,
            psn: fields.number("psn", 6)?,
            rkey: fields.number("rkey", 8)?,
            vaddr: fields.number("vaddr", 16)?,
            ..Self::default()
        };
        if text.len() >= Self::LONG {
            let mut gid = [0; 16];
            for byte in &mut gid {
                *byte = fields.number("gid", 2)?;
            }
            key.gid = Some(gid);
        }
        key.srqn = fields.number("srqn", 8)?;
        Ok(key)
    }
}

struct Fields<'a> {
    text: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    /// A number of that many digits, and the colon or the end behind it.
    fn number<T: TryFrom<u64>>(&mut self, field: &'static str, digits: usize) -> Result<T, Error> {
        let malformed = Error::Malformed {
            field,
            offset: self.at,
        };
        let parsed = self.text.get(self.at..self.at + digits).and_then(|hex| {
            let digits = hex.iter().all(u8::is_ascii_hexdigit);
            let hex = core::str::from_utf8(hex).ok().filter(|_| digits)?;
            T::try_from(u64::from_str_radix(hex, 16).ok()?).ok()
        });
        let end = matches!(self.text.get(self.at + digits), Some(b':' | 0) | None);
        self.at += digits + 1;
        parsed.filter(|_| end).ok_or(malformed)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As captured between two 6.06.
    const SEEN: &[u8; 108] = b"0000:0001:729001:9b5b1e:00000100:00007ff2e7162000:\
        00:00:00:00:00:00:00:00:00:00:ff:ff:7f:00:00:01:00000000:\0";

    #[test]
    fn a_captured_key_is_read_and_written() {
        let key = Key::from_text(SEEN).unwrap();
        assert_eq!((key.qpn, key.psn, key.rkey), (0x72_9001, 0x9b_5b1e, 0x100));
        assert_eq!(key.gid.unwrap()[10..], [0xff, 0xff, 127, 0, 0, 1]);
        assert_eq!(key.to_text(), SEEN);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut text = *SEEN;
        text[11] = b'x';
        let error = Key::from_text(&text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the peer's qpn at byte 10 is not a number in hexadecimal"
        );
        assert!(Key::from_text(&SEEN[..40]).is_err());
    }

    proptest! {
        #[test]
        fn keys_come_back(lid: u16, reads: u16, qpn in 0..1_u32 << 24, psn in 0..1_u32 << 24,
            rkey: u32, vaddr: u64, gid: Option<[u8; 16]>, srqn: u32) {
            let key = Key { lid, out_reads: reads, qpn, psn, rkey, vaddr, gid, srqn };
            let text = key.to_text();
            prop_assert_eq!(text.len(), Key::len(gid.is_some()));
            prop_assert_eq!(Key::from_text(&text).unwrap(), key);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..140)) {
            let _ = Key::from_text(&bytes);
        }
    }
}
