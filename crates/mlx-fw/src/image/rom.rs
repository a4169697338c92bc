//! Expansion ROMs: which are in an image, and their versions.

use std::fmt;

use rdma_wire::open_enum;

/// What stands before the version of each ROM.
const MARK: &[u8] = b"mlxsign:";
/// More are not looked for, as in the vendor's tools.
const MAX_ROMS: usize = 4;
/// How far to go on after a mark.
const INFO_SIZE: usize = 12;

open_enum! {
    /// What a ROM is.
    pub struct Product: u8 {
        CLP1 = 0x01,
        CLP2 = 0x02,
        CLP3 = 0x03,
        CLP4 = 0x04,
        /// With a free text for its version.
        CLP_TEXT = 0x0f => "CLP",
        PXE = 0x10,
        UEFI = 0x11,
        CLP = 0x12,
        NVME = 0x13 => "NVMe",
        UEFI_VIRTIO_NET = 0x14 => "UEFI Virtio net",
        UEFI_VIRTIO_BLK = 0x15 => "UEFI Virtio blk",
        PXE_VIRTIO_NET = 0x16 => "PXE Virtio net",
        FCODE = 0x21,
    }
}

/// One ROM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rom {
    /// What it is.
    pub product: u16,
    /// Its version; only the first number counts for [`Product::CLP_TEXT`].
    pub version: (u8, u8, u16),
    /// The processors it is for: bit 0 AMD64, 1 AARCH64; 3 both, 4 IA32.
    pub cpu: u8,
    /// The port it is for, 0 for all.
    pub port: u8,
    /// 0 InfiniBand, 1 Ethernet, 2 both, 0xff any.
    pub protocol: u8,
    /// The PCI device id it is for.
    pub device_id: u16,
}

impl Rom {
    /// The product by name.
    #[must_use]
    pub fn product_name(&self) -> Option<&'static str> {
        u8::try_from(self.product)
            .ok()
            .and_then(|product| Product::new(product).name())
    }

    /// The processors by name, as the vendor's tools print them.
    #[must_use]
    pub const fn cpu_name(&self) -> Option<&'static str> {
        match self.cpu {
            1 => Some("AMD64"),
            2 => Some("AARCH64"),
            3 => Some("AMD64,AARCH64"),
            4 => Some("IA32"),
            _ => None,
        }
    }

    /// The protocol by name, as the vendor's tools print it.
    #[must_use]
    pub const fn protocol_name(&self) -> Option<&'static str> {
        match self.protocol {
            0 => Some("IB"),
            1 => Some("ETH"),
            2 => Some("VPI"),
            _ => None,
        }
    }
}

/// As `flint query` prints a ROM.
impl fmt::Display for Rom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b, c) = self.version;
        let Some(product) = self.product_name() else {
            return writeln!(f, "{:#x} - Unknown ROM product ID", self.product);
        };
        if self.product == 0xf {
            return write!(f, "version_id={a} type={product} ");
        }
        write!(f, "type={product} version={a}.{b}.{c}")?;
        if self.product < 0x10 {
            return Ok(());
        }
        if self.port != 0 && self.product != 0x12 {
            write!(f, " port={}", self.port)?;
        }
        if self.product != 0x12 && self.protocol != 0xff {
            write!(f, " proto={}", self.protocol_name().unwrap_or("N/A"))?;
        }
        if self.cpu != 0 {
            write!(f, " cpu={}", self.cpu_name().unwrap_or("N/A"))?;
        }
        Ok(())
    }
}

/// All ROMs of a ROM section, at most four.
#[must_use]
pub fn roms(section: &[u8]) -> Vec<Rom> {
    let mut roms = Vec::new();
    let mut rest = section;
    while roms.len() < MAX_ROMS {
        let Some(at) = rest.windows(MARK.len()).position(|bytes| bytes == MARK) else {
            break;
        };
        let Some(info) = rest.get(at + MARK.len()..) else {
            break;
        };
        let dword = |index: usize| -> Option<[u8; 4]> {
            info.get(index * 4..index * 4 + 4)?.try_into().ok()
        };
        let (Some(dw0), Some(dw1)) = (dword(0), dword(1)) else {
            break;
        };
        let [ver0, _, id0, id1] = dw0;
        let [low, high, ver1, _] = dw1;
        let product = u16::from_le_bytes([id0, id1]);
        let mut rom = Rom {
            product,
            version: (ver0, ver1, u16::from_le_bytes([low, high])),
            cpu: 0,
            port: 0,
            protocol: 0xff,
            device_id: 0,
        };
        if product >= 0x10 {
            let Some([protocol, cpu_and_port, dev0, dev1]) = dword(2) else {
                break;
            };
            rom.protocol = protocol;
            rom.cpu = cpu_and_port & 0xf;
            rom.port = cpu_and_port >> 4;
            rom.device_id = u16::from_le_bytes([dev0, dev1]);
        }
        roms.push(rom);
        rest = info.get(INFO_SIZE..).unwrap_or_default();
    }
    roms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_a_real_rom() {
        // The version block of FlexBoot 3.4.752 for ConnectX-3 Pro, as the specification gives it.
        let mut bytes = b"..mlxsign:".to_vec();
        for dword in [0x0010_0003_u32, 0x0004_02f0, 0x1007_00ff] {
            bytes.extend(dword.to_le_bytes());
        }
        let [rom] = roms(&bytes)[..] else {
            panic!("one ROM")
        };
        assert_eq!(rom.device_id, 0x1007);
        assert_eq!(rom.to_string(), "type=PXE version=3.4.752");
    }

    #[test]
    fn a_mark_at_the_end_is_no_rom() {
        assert_eq!(roms(b"mlxsign:"), []);
        assert_eq!(roms(b"mlxsign:\x03\0\x10\0\xf0\x02\x04\0"), []);
    }
}
