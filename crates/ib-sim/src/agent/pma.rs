//! The performance management agent: what a node answers about its counters (IBTA 16.1).

use ib_mad::MAD_LEN;
use ib_mad::header::{MadHeader, Method};

use super::{Port, Verdict};

/// What a port has counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    /// How often its link went down; stops at the top.
    pub(crate) link_downed: u8,
    /// MADs that were received and sent here, and their 32-bit words.
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

const BAD_METHOD: u16 = 2 << 2;
const BAD_ATTRIBUTE: u16 = 3 << 2;
const BAD_FIELD: u16 = 7 << 2;

const CLASS_PORT_INFO: u16 = 0x01;
const PORT_COUNTERS: u16 = 0x12;
const PORT_COUNTERS_EXT: u16 = 0x1d;

/// Answers a request, by writing into it.
pub(crate) fn answer(ports: &mut [Port], in_port: u8, mad: &mut [u8; MAD_LEN]) -> Verdict {
    let header: MadHeader = bytemuck::pod_read_unaligned(mad.get(..24).unwrap_or(&[0; 24]));
    if header.method.is_response() {
        return Verdict::Forward;
    }
    let set = header.method == Method::SET;
    if !set && header.method != Method::GET {
        return Verdict::Answer(BAD_METHOD);
    }
    let data = mad.get_mut(64..).unwrap_or_default();
    let attribute = header.attribute_id.get();
    if attribute == CLASS_PORT_INFO && !set {
        data.fill(0);
        // Base and class version, then that there are 64-bit counters.
        put(data, 0, &[1, 1, 0x02, 0x00]);
        return Verdict::Answer(0);
    }
    if attribute != PORT_COUNTERS && attribute != PORT_COUNTERS_EXT {
        return Verdict::Answer(BAD_ATTRIBUTE);
    }
    let select = data.get(1).copied().unwrap_or(0);
    let number = if select == 0xff { in_port } else { select };
    let Some(port) = ports.get_mut(usize::from(number)) else {
        return Verdict::Answer(BAD_FIELD);
    };
    if set {
        port.counters = Counters::default();
    }
    let counters = port.counters;
    let words = MAD_LEN as u64 / 4;
    data.fill(0);
    put(data, 1, &[number]);
    let all = [
        counters.sent * words,
        counters.received * words,
        counters.sent,
        counters.received,
    ];
    if attribute == PORT_COUNTERS {
        put(data, 7, &[counters.link_downed]);
        for (at, value) in [24, 28, 32, 36].into_iter().zip(all) {
            // They stop at the top.
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            put(data, at, &value.to_be_bytes());
        }
    } else {
        for (at, value) in [8, 16, 24, 32].into_iter().zip(all) {
            put(data, at, &value.to_be_bytes());
        }
        put(data, 40, &counters.sent.to_be_bytes());
        put(data, 48, &counters.received.to_be_bytes());
    }
    Verdict::Answer(0)
}

fn put(data: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in data.iter_mut().skip(at).zip(bytes) {
        *to = *from;
    }
}
