//! The exchanges.

use std::io::{self, Read, Write};

use super::{BandwidthReport, Key, VERSION};

/// Who speaks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Called the other one, and says its part first.
    Client,
    /// Waits, and answers.
    Server,
}

/// Why the two don't come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket said so, or the peer said nothing for too long.
    #[error("{doing} failed")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the socket said.
        #[source]
        error: io::Error,
    },
    /// The peer closed the connection.
    #[error("the peer closed the connection while {doing}")]
    Closed {
        /// What was being done.
        doing: &'static str,
    },
    /// What the peer said is no part of the protocol.
    #[error("the peer's {field} at byte {offset} is not a number in hexadecimal")]
    Malformed {
        /// The field.
        field: &'static str,
        /// Where it begins in the message.
        offset: usize,
    },
    /// What the peer said first is not a version of perftest.
    #[error("the peer is no perftest: it begins with {found:?}")]
    Stranger {
        /// What it said.
        found: String,
    },
    /// What the peer wants to say of itself is too long.
    #[error("the peer wants to say {bytes} bytes of itself")]
    Long {
        /// How many.
        bytes: u32,
    },
    /// The peer is a version that cannot be spoken with.
    #[error("the peer is perftest {version}, and before 5.70 it spoke another protocol")]
    Old {
        /// Its version.
        version: String,
    },
}

/// The most bytes that a side says of itself.
const LONGEST: u32 = 1 << 20;

/// What the other side is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// perftest's version, such as `6.06`.
    pub version: String,
    /// Whether it is this crate, which then says more.
    pub is_rperf: bool,
    /// The larger one of both sides: bytes between areas of memory.
    pub cycle_buffer: u32,
    /// The larger one of both sides.
    pub cache_line: u32,
    /// `ibv_mtu`, the smaller one of both sides.
    pub mtu: u32,
}

/// Behind the end of the version, where perftest does not look.
const MARK: &[u8] = b"rperf/1";
const VERSION_LEN: usize = 16;

/// One end of the conversation.
#[derive(Debug)]
pub struct Talk<S> {
    stream: S,
    role: Role,
}

impl<S: Read + Write> Talk<S> {
    /// Over a stream that is neither split nor cut.
    pub const fn new(stream: S, role: Role) -> Self {
        Self { stream, role }
    }

    /// Who speaks first.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// The stream.
    pub const fn stream(&self) -> &S {
        &self.stream
    }

    /// Says `own` and hears as much.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] and [`Error::Closed`].
    pub fn swap<const N: usize>(
        &mut self,
        doing: &'static str,
        own: &[u8; N],
    ) -> Result<[u8; N], Error> {
        let mut theirs = [0; N];
        self.trade(doing, own, &mut theirs)?;
        Ok(theirs)
    }

    fn trade(&mut self, doing: &'static str, own: &[u8], theirs: &mut [u8]) -> Result<(), Error> {
        if self.role == Role::Client {
            self.say(doing, own)?;
            self.hear(doing, theirs)
        } else {
            self.hear(doing, theirs)?;
            self.say(doing, own)
        }
    }

    fn say(&mut self, doing: &'static str, bytes: &[u8]) -> Result<(), Error> {
        let said = self
            .stream
            .write_all(bytes)
            .and_then(|()| self.stream.flush());
        said.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Error::Closed { doing },
            _ => Error::Io { doing, error },
        })
    }

    fn hear(&mut self, doing: &'static str, bytes: &mut [u8]) -> Result<(), Error> {
        self.stream
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                    Error::Closed { doing }
                }
                _ => Error::Io { doing, error },
            })
    }

    /// Says what this is, and hears what the other one is.
    ///
    /// # Errors
    ///
    /// [`Error::Stranger`] and [`Error::Old`] for who is no perftest that can be spoken with.
    #[doc(alias = "exchange_versions")]
    pub fn greet(
        &mut self,
        cycle_buffer: u32,
        cache_line: u32,
        mtu: u32,
    ) -> Result<Greeting, Error> {
        let doing = "exchanging versions";
        let mut own = [0; VERSION_LEN];
        for (to, from) in own
            .iter_mut()
            .zip(VERSION.bytes().chain([0]).chain(MARK.iter().copied()))
        {
            *to = from;
        }
        let theirs = self.swap(doing, &own)?;
        let (version, rest) = theirs.split_at(
            theirs
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(VERSION_LEN),
        );
        let text = String::from_utf8_lossy(version).into_owned();
        let number = numbers(&text).ok_or_else(|| Error::Stranger {
            found: text.clone(),
        })?;
        if number < (5, 70) {
            return Err(Error::Old { version: text });
        }
        let is_rperf = rest.get(1..=MARK.len()) == Some(MARK);

        let theirs = self.swap("exchanging page sizes", &cycle_buffer.to_be_bytes())?;
        let cycle_buffer = cycle_buffer.max(bounded(u32::from_be_bytes(theirs)));
        let theirs = self.swap("exchanging cache lines", &cache_line.to_be_bytes())?;
        let cache_line = cache_line.max(bounded(u32::from_be_bytes(theirs)));
        let digit = u8::try_from(mtu).unwrap_or(5).clamp(1, 5);
        let [their_mtu, _] = self.swap("exchanging MTUs", &[b'0' + digit, 0])?;
        if !(b'1'..=b'5').contains(&their_mtu) {
            return Err(Error::Malformed {
                field: "MTU",
                offset: 0,
            });
        }
        Ok(Greeting {
            version: text,
            is_rperf,
            cycle_buffer,
            cache_line,
            mtu: digit.min(their_mtu - b'0').into(),
        })
    }

    /// Says something of any length and hears what the other one says; only between two of this crate.
    ///
    /// # Errors
    ///
    /// [`Error::Long`], and those of [`Talk::swap`].
    pub fn share(&mut self, doing: &'static str, own: &[u8]) -> Result<Vec<u8>, Error> {
        let len = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let theirs = u32::from_be_bytes(self.swap(doing, &len.to_be_bytes())?);
        if theirs > LONGEST {
            return Err(Error::Long { bytes: theirs });
        }
        let mut bytes = vec![0; usize::try_from(theirs).unwrap_or(0)];
        self.trade(doing, own, &mut bytes)?;
        Ok(bytes)
    }

    /// Says a key and hears one, which has a GID where ours has one.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`], and those of [`Talk::swap`].
    #[doc(alias = "ctx_hand_shake")]
    pub fn keys(&mut self, doing: &'static str, own: &Key) -> Result<Key, Error> {
        let text = own.to_text();
        let mut theirs = vec![0; text.len()];
        self.trade(doing, &text, &mut theirs)?;
        Key::from_text(&theirs)
    }

    /// Says a report and hears one.
    ///
    /// # Errors
    ///
    /// Those of [`Talk::swap`].
    #[doc(alias = "xchg_bw_reports")]
    pub fn reports(&mut self, own: BandwidthReport) -> Result<BandwidthReport, Error> {
        let mut theirs = [[0; 8]; 5];
        for (theirs, own) in theirs.iter_mut().zip(own.to_bytes()) {
            *theirs = self.swap("exchanging results", &own)?;
        }
        Ok(BandwidthReport::from_bytes(theirs))
    }

    /// Ends the conversation: a key once more, and a word that later versions don't say.
    ///
    /// # Errors
    ///
    /// Those of [`Talk::swap`].
    #[doc(alias = "ctx_close_connection")]
    pub fn close(mut self, own: &Key) -> Result<(), Error> {
        let doing = "ending the conversation";
        self.keys(doing, own)?;
        // 6.06 says it and does not wait for it; who is gone already has measured.
        let _ = self.say(doing, b"done\0");
        Ok(())
    }
}

/// No more than any machine has, so that a peer cannot make us ask for more memory than there is.
fn bounded(value: u32) -> u32 {
    value.min(1 << 21)
}

/// `6.06` as 6 and 6.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.trim().split_once('.')?;
    let digits = minor.split(|byte: char| !byte.is_ascii_digit()).next()?;
    Some((major.parse().ok()?, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// A peer that says what it says, whatever it hears.
    struct Deaf(Cursor<Vec<u8>>);

    impl Read for Deaf {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Deaf {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn talk(bytes: &[u8]) -> Talk<Deaf> {
        Talk::new(Deaf(Cursor::new(bytes.to_vec())), Role::Server)
    }

    #[test]
    fn the_smaller_mtu_and_the_larger_page_are_taken() {
        let mut bytes = b"6.29\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend(65_536_u32.to_be_bytes());
        bytes.extend(32_u32.to_be_bytes());
        bytes.extend(b"3\0");
        let greeting = talk(&bytes).greet(4096, 64, 5).unwrap();
        assert_eq!(
            (greeting.cycle_buffer, greeting.cache_line, greeting.mtu),
            (65_536, 64, 3)
        );
        assert!(!greeting.is_rperf);
        // What only this crate says.
        let own = b"6.06\0rperf/1\0\0\0\0";
        bytes.splice(..16, *own);
        assert!(talk(&bytes).greet(4096, 64, 5).unwrap().is_rperf);
    }

    proptest! {
        #[test]
        fn any_peer_is_heard_or_refused(
            version in prop::option::of("[0-9]{1,3}\\.[0-9]{1,3}"),
            bytes in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut said = version.unwrap_or_default().into_bytes();
            if !said.is_empty() {
                said.resize(16, 0);
            }
            said.extend(bytes);
            let mut talk = talk(&said);
            if talk.greet(4096, 64, 5).is_ok() {
                let _ = talk.share("telling", b"own");
                let _ = talk.keys("exchanging", &Key::default());
                let _ = talk.reports(BandwidthReport::default());
                let _ = talk.close(&Key { gid: Some([0; 16]), ..Key::default() });
            }
        }
    }
}
