//! A peer that says anything at all: it is understood or refused, whichever end we are.

use std::io::{self, Cursor, Read, Write};

use proptest::prelude::*;
use rperf::peer::{BandwidthReport, Error, Key, PSN_MASK, Role, Talk};

/// A socket whose other end says `says` whatever it hears.
struct Deaf {
    says: Cursor<Vec<u8>>,
}

impl Read for Deaf {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.says.read(to)
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

/// All exchanges of a test, one after the other.
fn converse(says: Vec<u8>, role: Role, gid: bool) -> Result<(), Error> {
    let says = Cursor::new(says);
    let mut talk = Talk::new(Deaf { says }, role);
    let greeting = talk.greet(4096, 64, 3)?;
    // What areas of memory are made of later.
    assert!((4096..=1 << 30).contains(&greeting.cycle_buffer));
    assert!((64..=1 << 30).contains(&greeting.cache_line));
    assert!((1..=3).contains(&greeting.mtu), "more than we can");
    let own = Key {
        gid: gid.then_some([1; 16]),
        ..Key::default()
    };
    for _ in 0..3 {
        let key = talk.keys("exchanging keys", &own)?;
        assert!(key.qpn <= PSN_MASK && key.psn <= PSN_MASK);
        assert_eq!(key.gid.is_some(), gid);
    }
    talk.reports(BandwidthReport::default())?;
    talk.share("exchanging environments", b"ours")?;
    talk.close(&own)
}

/// A conversation of perftest's, with the length of a text at its end that only we say.
fn perftest(gid: bool) -> Vec<u8> {
    let key = Key {
        lid: 1,
        out_reads: 16,
        qpn: 0x0072_9001,
        psn: 0x009b_5b1e,
        rkey: 0x100,
        vaddr: 0x7ff2_e716_2000,
        gid: gid.then_some([0xfe; 16]),
        srqn: 0,
    }
    .to_text();
    let mut says = b"6.06\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    says.extend_from_slice(&[0, 0, 0x10, 0, 0, 0, 0, 0x40]);
    says.extend_from_slice(b"5\0");
    says.extend([&key[..]; 3].concat());
    says.extend_from_slice(&[0; 40]);
    says.extend_from_slice(&[0, 0, 0, 3]);
    says.extend_from_slice(b"abc");
    says.extend_from_slice(&key);
    says.extend_from_slice(b"done\0");
    says
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Client), Just(Role::Server)]
}

#[test]
fn what_perftest_says_is_understood() {
    for (role, gid) in [
        (Role::Client, true),
        (Role::Client, false),
        (Role::Server, true),
        (Role::Server, false),
    ] {
        converse(perftest(gid), role, gid).unwrap();
    }
}

#[test]
fn a_side_with_gids_and_one_without_do_not_understand_each_other() {
    for gid in [true, false] {
        assert!(converse(perftest(!gid), Role::Client, gid).is_err());
    }
}

proptest! {
    #[test]
    fn any_bytes_are_understood_or_refused(says in any::<Vec<u8>>(), role in role(), gid in any::<bool>()) {
        let _ = converse(says, role, gid);
    }

    #[test]
    fn a_damaged_conversation_is_understood_or_refused(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        role in role(),
        gid in any::<bool>(),
    ) {
        let mut says = perftest(gid);
        for (at, byte) in flips {
            let at = at.index(says.len());
            says[at] = byte;
        }
        let _ = converse(says, role, gid);
    }

    #[test]
    fn a_conversation_that_ends_early_is_refused(cut in any::<prop::sample::Index>(), role in role(), gid in any::<bool>()) {
        let mut says = perftest(gid);
        // Only perftest's last word may be missing.
        says.truncate(cut.index(says.len() - b"done\0".len()));
        let closed = matches!(converse(says, role, gid), Err(Error::Closed { .. }));
        prop_assert!(closed);
    }
}
