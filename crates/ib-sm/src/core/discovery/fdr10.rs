//! Who can be asked whether a link runs at FDR10.

/// Devices that have the attribute for FDR10: switches from SwitchX on and adapters from
/// ConnectX-3 on, Mellanox' own and Bull's (rdma-core `libibnetdisc/ibnetdisc.c`).
pub(super) const fn knows_fdr10(vendor: u32, device: u16) -> bool {
    let own = matches!(
        device,
        0xc738..=0xc73b
            | 0xc839
            | 0xcb20
            | 0xcf08
            | 0xcf09
            | 0xd2f0
            | 0x1003..=0x101b
            | 0xa2d2
    );
    let bull = matches!(
        device,
        0x1b02 | 0x1b50
            | 0x1ba0
            | 0x1bd0..=0x1bd5
            | 0x1bf0
            | 0x1b33
            | 0x1b73
            | 0x1b40
            | 0x1b41
            | 0x1b60
            | 0x1b61
            | 0x1b83
            | 0x1b93
            | 0x1b94
            | 0x1bb4
            | 0x1bb5
            | 0x1bc4..=0x1bc6
    );
    own || (vendor == 0x119f && bull)
}
