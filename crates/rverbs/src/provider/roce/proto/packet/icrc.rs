//! The invariant CRC: what protects a packet from end to end (IBTA 7.8.1, annex A17.3.3).
//!
//! CRC-32 of Ethernet over IP header, UDP header, transport headers, payload and padding, with
//! the fields that routers change read as ones, after eight bytes of ones for a header that
//! RoCEv2 does not have. It stands little-endian at the end of the UDP payload.
//!
//! The sum covers the IPv4 identification, which a UDP socket can neither set nor see. As sender
//! we use sockets whose packets have 0, 1, 2, … in one segmented datagram
//! (`IP_PMTUDISC_DO`, unconnected, `UDP_SEGMENT`). As receiver we use that a CRC is linear: the
//! sum computed for identification 0 and the one received differ by the image of the
//! identification, so undoing the shift by the bytes that follow it must leave 16 bits and no
//! more. A wrong sum passes once in 65 536; a plain match is the same chance for any one of the
//! identifications.

use core::net::{IpAddr, SocketAddr};

use super::crc::{self, POLY};

/// Bytes of the sum.
pub const LEN: usize = 4;

/// CRC-32 of eight bytes 0xff, where every sum starts.
const START: u32 = 0x2144_df1c;
/// The longest UDP payload that we take: the largest MTU with the longest headers, and room.
pub const MAX_PACKET: usize = 4096 + 128;

/// The addresses of a packet, which the sum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Whence.
    pub src: SocketAddr,
    /// Whither.
    pub dst: SocketAddr,
}

/// The sum over a UDP payload without its last four bytes.
///
/// `id` is the IPv4 identification of the packet; IPv6 has none and ignores it. The packet is
/// taken to have the flag "don't fragment" and no IP options. Both addresses must be of one
/// family: a mixture is summed as zeroes.
#[must_use]
pub fn compute(flow: &Flow, id: u16, body: &[u8]) -> u32 {
    let udp_len = u16::try_from(body.len() + LEN + 8).unwrap_or(u16::MAX);
    let mut head = [0u8; 40 + 8 + 12];
    let used = match (flow.src.ip(), flow.dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = udp_len.saturating_add(20).to_be_bytes();
            let id = id.to_be_bytes();
            let ip = [
                0x45, 0xff, total[0], total[1], id[0], id[1], 0x40, 0x00, 0xff, 17, 0xff, 0xff,
            ];
            put(&mut head, 0, &ip);
            put(&mut head, 12, &src.octets());
            put(&mut head, 16, &dst.octets());
            20
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let len = udp_len.to_be_bytes();
            put(
                &mut head,
                0,
                &[0x6f, 0xff, 0xff, 0xff, len[0], len[1], 17, 0xff],
            );
            put(&mut head, 8, &src.octets());
            put(&mut head, 24, &dst.octets());
            40
        }
        _ => 20,
    };
    put(&mut head, used, &flow.src.port().to_be_bytes());
    put(&mut head, used + 2, &flow.dst.port().to_be_bytes());
    put(&mut head, used + 4, &udp_len.to_be_bytes());
    put(&mut head, used + 6, &[0xff, 0xff]);
    let (bth, rest) = body.split_at_checked(12).unwrap_or((body, &[]));
    put(&mut head, used + 8, bth);
    put(&mut head, used + 8 + 4, &[0xff]);
    let sum = crc::update(START, head.get(..used + 8 + bth.len()).unwrap_or(&[]));
    crc::update(sum, rest)
}

fn put(head: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = head.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Checks sums without knowing the IPv4 identification.
#[derive(Clone)]
pub struct Checker {
    /// For a body of `4 * i` bytes, the polynomial that undoes the shift from the identification
    /// to the end of the sum.
    undo: Box<[u32]>,
}

impl core::fmt::Debug for Checker {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Checker").finish_non_exhaustive()
    }
}

impl Default for Checker {
    fn default() -> Self {
        Self::new()
    }
}

impl Checker {
    /// Makes the table, about 4 KiB.
    #[must_use]
    pub fn new() -> Self {
        // From the identification to the end there are its own two bytes, 14 of the IP header,
        // 8 of UDP, then the body.
        let mut power = back(1 << 31, 8 * (2 + 14 + 8));
        let undo = (0..=MAX_PACKET / 4)
            .map(|_| {
                let this = power;
                power = back(power, 32);
                this
            })
            .collect();
        Self { undo }
    }

    /// Whether the last four bytes of a UDP payload are the sum of the others, for any IPv4
    /// identification. Returns the identification if it is.
    #[must_use]
    pub fn check(&self, flow: &Flow, bytes: &[u8]) -> Option<u16> {
        let (body, sum) = bytes.split_last_chunk::<LEN>()?;
        let difference = compute(flow, 0, body) ^ u32::from_le_bytes(*sum);
        if difference == 0 {
            return Some(0);
        }
        if !flow.src.is_ipv4() || !body.len().is_multiple_of(4) {
            return None;
        }
        let undo = self.undo.get(body.len() / 4)?;
        // The first byte processed is the low one of the register.
        u16::try_from(multiply(difference, *undo))
            .ok()
            .map(u16::swap_bytes)
    }
}

/// Divides by x, `times` times, in the field of the CRC with the bits reflected.
const fn back(mut value: u32, times: u32) -> u32 {
    let mut i = 0;
    while i < times {
        value = if value & (1 << 31) != 0 {
            ((value ^ POLY) << 1) | 1
        } else {
            value << 1
        };
        i += 1;
    }
    value
}

/// Multiplies in the field of the CRC with the bits reflected.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1u32 << 31;
    while bit != 0 {
        product ^= b & 0u32.wrapping_sub((a & bit != 0) as u32);
        b = (b >> 1) ^ (POLY & 0u32.wrapping_sub(b & 1));
        bit >>= 1;
    }
    product
}
