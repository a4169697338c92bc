//! The host's end of the virtio port: lines, and base64 in them.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// More output than this from one command is a mistake in the command, and it would fill the guest's memory too.
const LONGEST_LINE: usize = 512 << 20;

/// A connection to the guest's init.
#[derive(Debug)]
pub(super) struct Link {
    stream: UnixStream,
    pending: Vec<u8>,
    /// How much of `pending` holds no line end for sure.
    searched: usize,
}

impl Link {
    pub(super) fn connect(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).context("connecting to the guest's port")?;
        stream
            .set_write_timeout(Some(Duration::from_secs(30)))
            .context("setting a time limit")?;
        Ok(Self {
            stream,
            pending: Vec::new(),
            searched: 0,
        })
    }

    pub(super) fn send(&mut self, line: &str) -> Result<()> {
        self.stream
            .write_all(line.as_bytes())
            .context("writing to the guest's port")
    }

    /// The next line without its end, `None` when none came within `limit`.
    pub(super) fn line(&mut self, limit: Duration) -> Result<Option<String>> {
        self.stream
            .set_read_timeout(Some(limit))
            .context("setting a time limit")?;
        let mut chunk = vec![0; 64 << 10];
        loop {
            let unsearched = self.pending.get(self.searched..).unwrap_or_default();
            if let Some(at) = unsearched.iter().position(|&byte| byte == b'\n') {
                let rest = self.pending.split_off(self.searched + at + 1);
                let mut line = std::mem::replace(&mut self.pending, rest);
                self.searched = 0;
                line.pop();
                return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
            }
            self.searched = self.pending.len();
            if self.pending.len() > LONGEST_LINE {
                bail!("the guest sends a line of more than {LONGEST_LINE} bytes");
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => {
                    // QEMU is gone; the caller sees that next and says why.
                    std::thread::sleep(limit);
                    return Ok(None);
                }
                Ok(got) => self
                    .pending
                    .extend_from_slice(chunk.get(..got).unwrap_or_default()),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error).context("reading from the guest's port"),
            }
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// base64 of RFC 4648 with padding. Twenty lines here against one more package in the build.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group
            .iter()
            .enumerate()
            .fold(0_u32, |word, (index, &byte)| {
                word | u32::from(byte) << (16 - 8 * index)
            });
        for index in 0..4 {
            let letter = ALPHABET
                .get((word >> (18 - 6 * index) & 63) as usize)
                .copied()
                .unwrap_or_default();
            text.push(if index <= group.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

/// The bytes of [`encode`]'s text.
pub(super) fn decode(text: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut word, mut bits) = (0_u32, 0_u32);
    for letter in text.trim_end().trim_end_matches('=').bytes() {
        let Some(value) = ALPHABET.iter().position(|&known| known == letter) else {
            bail!("the guest sent what is not base64");
        };
        word = word << 6 | u32::try_from(value)?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(word >> bits & 0xff)?);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text).expect("good"), plain.as_bytes());
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)).expect("good"), all);
        assert!(decode("a\u{e9}").is_err());
    }
}
