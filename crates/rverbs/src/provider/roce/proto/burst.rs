//! Packets that leave together: one datagram for `UDP_SEGMENT` to cut.

use core::fmt;

use super::packet::header::Bth;
use super::packet::icrc::{self, Flow};

/// Where packets go, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// Both addresses.
    pub flow: Flow,
    /// The byte with DSCP and ECN.
    pub tos: u8,
}

/// A buffer of equal packets to one destination; only the last may be shorter.
///
/// The order in it decides the IPv4 identification that a packet leaves with, and so its ICRC:
/// the driver must send a burst as one segmented datagram, or one with a single packet plainly.
pub struct Burst {
    buf: Box<[u8]>,
    len: usize,
    segment: usize,
    count: u16,
    /// A shorter packet has ended it.
    closed: bool,
    max_packets: u16,
    destination: Option<Destination>,
}

impl fmt::Debug for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Burst")
            .field("destination", &self.destination)
            .field("count", &self.count)
            .field("segment", &self.segment)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Burst {
    /// What one UDP datagram over IPv4 can hold.
    const CAPACITY: usize = 65_507;

    /// An empty burst of up to `max_packets` packets: 1 where the system does not segment, at
    /// most 64 where it does.
    #[must_use]
    pub fn new(max_packets: u16) -> Self {
        Self {
            buf: vec![0; Self::CAPACITY].into_boxed_slice(),
            len: 0,
            segment: 0,
            count: 0,
            closed: false,
            max_packets: max_packets.max(1),
            destination: None,
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.len = 0;
        self.segment = 0;
        self.count = 0;
        self.closed = false;
        self.destination = None;
    }

    /// Where it goes; `None` if it is empty.
    #[must_use]
    pub fn destination(&self) -> Option<&Destination> {
        self.destination.as_ref().filter(|_| self.count > 0)
    }

    /// The bytes of all packets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.buf.get(..self.len).unwrap_or(&[])
    }

    /// Bytes of each packet but the last.
    #[must_use]
    pub fn segment(&self) -> usize {
        self.segment
    }

    /// How many packets there are.
    #[must_use]
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The packets one by one.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes().chunks(self.segment.max(1))
    }

    /// Makes its packets such that each can be sent as a datagram of its own, all with the IPv4
    /// identification 0.
    pub fn unsegmented(&mut self) {
        let (Some(destination), segment) = (self.destination, self.segment.max(1)) else {
            return;
        };
        for packet in self
            .buf
            .get_mut(..self.len)
            .unwrap_or(&mut [])
            .chunks_mut(segment)
        {
            if let Some((body, sum)) = packet.split_last_chunk_mut::<{ icrc::LEN }>() {
                *sum = icrc::compute(&destination.flow, 0, body).to_le_bytes();
            }
        }
    }

    /// Whether a packet of `len` bytes to `destination` still fits.
    pub(super) fn fits(&self, destination: &Destination, len: usize) -> bool {
        if self.count == 0 {
            return len <= self.buf.len();
        }
        !self.closed
            && self.count < self.max_packets
            && len <= self.segment
            && self.len + len <= self.buf.len()
            && self.destination.as_ref() == Some(destination)
    }

    /// The place for the next packet, to be given to [`Burst::seal`]. Ask [`Burst::fits`] first.
    pub(super) fn place(&mut self, len: usize) -> &mut [u8] {
        self.buf
            .get_mut(self.len..self.len + len)
            .unwrap_or(&mut [])
    }

    /// Ends the packet at [`Burst::place`]: writes its ICRC.
    pub(super) fn seal(&mut self, destination: &Destination, len: usize) {
        let id = self.count;
        if let Some(packet) = self.buf.get_mut(self.len..self.len + len)
            && let Some((body, sum)) = packet.split_last_chunk_mut::<{ icrc::LEN }>()
        {
            *sum = icrc::compute(&destination.flow, id, body).to_le_bytes();
        }
        if self.count == 0 {
            self.destination = Some(*destination);
            self.segment = len;
        } else if len < self.segment {
            self.closed = true;
        }
        self.len += len;
        self.count += 1;
    }

    /// Writes a packet of headers only.
    pub(super) fn push(
        &mut self,
        destination: &Destination,
        bth: &Bth,
        extended: [&[u8]; 3],
    ) -> bool {
        let len =
            size_of::<Bth>() + extended.iter().map(|part| part.len()).sum::<usize>() + icrc::LEN;
        if !self.fits(destination, len) {
            return false;
        }
        let mut writer = Writer::new(self.place(len));
        writer.put(bth);
        for part in extended {
            writer.bytes(part);
        }
        self.seal(destination, len);
        true
    }
}

/// Writes headers one after the other.
pub(super) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    pub(super) const fn new(rest: &'a mut [u8]) -> Self {
        Self { rest }
    }

    pub(super) fn put<T: bytemuck::NoUninit>(&mut self, header: &T) {
        self.bytes(bytemuck::bytes_of(header));
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let space = self.space(bytes.len());
        debug_assert_eq!(
            space.len(),
            bytes.len(),
            "the place is as long as the packet"
        );
        if space.len() == bytes.len() {
            space.copy_from_slice(bytes);
        }
    }

    /// The next `len` bytes. The writer is made for a place of the right length, so what does
    /// not fit is a mistake of ours and is cut off with an empty slice.
    pub(super) fn space(&mut self, len: usize) -> &'a mut [u8] {
        let rest = core::mem::take(&mut self.rest);
        match rest.split_at_mut_checked(len) {
            Some((space, left)) => {
                self.rest = left;
                space
            }
            None => &mut [],
        }
    }
}
