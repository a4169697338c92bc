//! Address handles.

use core::ffi::{c_int, c_void};

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_WC_GRH, ibv_ah, ibv_ah_attr, ibv_context, ibv_gid, ibv_global_route, ibv_grh, ibv_pd,
    ibv_wc,
};

use super::adopt;
use crate::device::{Open, open_of};
use crate::errno::{self, UNSUPPORTED, given};

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    let open = open_of!(pd);
    errno::pointer(given(pd).and_then(|pd| {
        // SAFETY: C's contract: the domain is live and `attr` readable.
        let ah = unsafe { open.provider.create_ah(pd, &*attr) }?;
        Ok(adopt!(open, ah))
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int {
    let open = open_of!(ah);
    // SAFETY: C's contract: the handle is live, and not used again if this succeeds.
    errno::code(given(ah).and_then(|ah| unsafe { open.provider.destroy_ah(ah) }))
}

/// Source and destination of a datagram, from the 40 bytes before its payload.
///
/// RoCEv2 over IPv4 leaves the IPv4 header in the last 20 of them; otherwise they are a GRH, which is
/// laid out as an IPv6 header.
fn addresses(header: &[u8; 40]) -> ([u8; 16], [u8; 16]) {
    let mut source = [0; 16];
    let mut destination = [0; 16];
    if header[0] >> 4 != 6 && header[20] >> 4 == 4 {
        for (gid, at) in [(&mut source, 32), (&mut destination, 36)] {
            gid[10..12].fill(0xff);
            gid[12..].copy_from_slice(&header[at..at + 4]);
        }
    } else {
        source.copy_from_slice(&header[8..24]);
        destination.copy_from_slice(&header[24..40]);
    }
    (source, destination)
}

/// The address to answer a datagram at.
///
/// # Safety
///
/// `grh` can be read where the completion says that there is one.
unsafe fn answer(
    open: &Open,
    port: u8,
    wc: &ibv_wc,
    grh: *const ibv_grh,
) -> Result<ibv_ah_attr, Errno> {
    let mut attr = ibv_ah_attr {
        dlid: wc.slid,
        sl: wc.sl,
        src_path_bits: wc.dlid_path_bits,
        port_num: port,
        ..ibv_ah_attr::default()
    };
    if wc.wc_flags & IBV_WC_GRH == 0 {
        return Ok(attr);
    }
    // SAFETY: the struct is 40 bytes, and the caller promises that they are there.
    let header = unsafe { grh.cast::<[u8; 40]>().read_unaligned() };
    let (source, destination) = addresses(&header);
    let word = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
    let v6 = header[0] >> 4 == 6;
    attr.is_global = 1;
    attr.grh = ibv_global_route {
        dgid: ibv_gid { raw: source },
        flow_label: if v6 { word & 0xf_ffff } else { 0 },
        sgid_index: index_of(open, port, &destination)?,
        hop_limit: u8::MAX,
        traffic_class: if v6 {
            (word >> 20 & 0xff) as u8
        } else {
            header[21]
        },
    };
    Ok(attr)
}

fn index_of(open: &Open, port: u8, gid: &[u8; 16]) -> Result<u8, Errno> {
    for index in 0..=u8::MAX {
        match open.provider.query_gid(port, u32::from(index)) {
            // SAFETY: all bytes of the union are in `raw`.
            Ok(entry) if unsafe { entry.gid.raw } == *gid => return Ok(index),
            Ok(_) | Err(Errno(libc::ENODATA)) => {}
            Err(_) => break,
        }
    }
    // A multicast datagram names no address of ours: it was for all of them.
    match gid[0] {
        0xff => Ok(0),
        _ => Err(Errno(libc::EINVAL)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_init_ah_from_wc(
    context: *mut ibv_context,
    port: u8,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    attr: *mut ibv_ah_attr,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    // SAFETY: C's contract: the completion and its header are readable.
    let found = unsafe { answer(open, port, &*wc, grh) };
    errno::minus_one(found.map(|found| {
        // SAFETY: C's contract: `attr` is writable.
        unsafe { attr.write(found) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    port: u8,
) -> *mut ibv_ah {
    let open = open_of!(pd);
    errno::pointer(given(pd).and_then(|pd| {
        // SAFETY: C's contract: the completion and its header are readable.
        let attr = unsafe { answer(open, port, &*wc, grh) }?;
        // SAFETY: C's contract: the domain is live.
        let ah = unsafe { open.provider.create_ah(pd, &attr) }?;
        Ok(adopt!(open, ah))
    }))
}

/// There is no Ethernet below us whose addresses could be told.
#[unsafe(no_mangle)]
extern "C" fn ibv_resolve_eth_l2_from_gid(
    _context: *mut ibv_context,
    _attr: *mut ibv_ah_attr,
    _mac: *mut u8,
    _vlan: *mut c_void,
) -> c_int {
    errno::minus_one(Err(UNSUPPORTED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_datagram_names_both_sides() {
        let mut grh = [0; 40];
        grh[0] = 0x60;
        grh[8..24].fill(1);
        grh[24..40].fill(2);
        assert_eq!(addresses(&grh), ([1; 16], [2; 16]));

        let mut v4 = [0; 40];
        v4[20] = 0x45;
        v4[32..36].copy_from_slice(&[192, 0, 2, 1]);
        v4[36..40].copy_from_slice(&[192, 0, 2, 2]);
        let (source, destination) = addresses(&v4);
        assert_eq!(source[10..], [0xff, 0xff, 192, 0, 2, 1]);
        assert_eq!(destination[10..], [0xff, 0xff, 192, 0, 2, 2]);
    }
}
