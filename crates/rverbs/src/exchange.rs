//! Connecting by a socket: both sides say what they are.

use std::io::{Read, Write};

use crate::mr::RemoteRegion;
use crate::qp::Endpoint;

/// What one side says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Its queue pair.
    pub endpoint: Endpoint,
    /// Memory that the other may use.
    pub region: Option<RemoteRegion>,
}

const MAGIC: [u8; 4] = *b"rvx1";
const LEN: usize = 4 + Endpoint::LEN + 1 + RemoteRegion::LEN;

impl Hello {
    fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..31].copy_from_slice(&self.endpoint.to_bytes());
        if let Some(region) = self.region {
            bytes[31] = 1;
            bytes[32..].copy_from_slice(&region.to_bytes());
        }
        bytes
    }
}

/// Says `own` and hears what the other side says. Both may speak at once; on a stream that is neither
/// split nor cut, whatever it is (TCP, a Unix socket, a pipe pair).
///
/// # Errors
///
/// What the stream said; `InvalidData` for a peer that speaks something else.
pub fn exchange(stream: &mut (impl Read + Write), own: &Hello) -> std::io::Result<Hello> {
    stream.write_all(&own.to_bytes())?;
    stream.flush()?;
    let mut bytes = [0; LEN];
    stream.read_exact(&mut bytes)?;
    let (magic, rest) = bytes.split_at(4);
    let parsed = (|| {
        if magic != MAGIC {
            return None;
        }
        let (endpoint, rest) = rest.split_first_chunk::<{ Endpoint::LEN }>()?;
        let (has, rest) = rest.split_first()?;
        let (region, _) = rest.split_first_chunk::<{ RemoteRegion::LEN }>()?;
        Some(Hello {
            endpoint: Endpoint::from_bytes(endpoint),
            region: (*has == 1).then(|| RemoteRegion::from_bytes(region)),
        })
    })();
    parsed.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
}

/// Waits until the other side says so too.
///
/// # Errors
///
/// What the stream said.
pub fn barrier(stream: &mut (impl Read + Write)) -> std::io::Result<()> {
    stream.write_all(&[1])?;
    stream.flush()?;
    stream.read_exact(&mut [0])
}
