//! The hardware ids of adapters and switches.

use rdma_wire::{Be16, open_enum};

open_enum! {
    /// The chip that an image is for. The number stands in the supported_hw_id of IMAGE_INFO and
    /// in the device's own register.
    pub struct HwId: Be16 as u16 {
        CONNECTX3 = 0x1f5 => "ConnectX-3",
        CONNECTX3_PRO = 0x1f7 => "ConnectX-3 Pro",
        CONNECT_IB = 0x1ff => "Connect-IB",
        CONNECTX4 = 0x209 => "ConnectX-4",
        CONNECTX4_LX = 0x20b => "ConnectX-4 Lx",
        CONNECTX5 = 0x20d => "ConnectX-5",
        CONNECTX6 = 0x20f => "ConnectX-6",
        BLUEFIELD = 0x211 => "BlueField",
        CONNECTX6_DX = 0x212 => "ConnectX-6 Dx",
        BLUEFIELD2 = 0x214 => "BlueField-2",
        CONNECTX6_LX = 0x216 => "ConnectX-6 Lx",
        CONNECTX7 = 0x218 => "ConnectX-7",
        BLUEFIELD3 = 0x21c => "BlueField-3",
        CONNECTX8 = 0x21e => "ConnectX-8",
        BLUEFIELD4 = 0x220 => "BlueField-4",
        CONNECTX8_SWITCH = 0x222 => "ConnectX-8 PCIe switch",
        CONNECTX9 = 0x224 => "ConnectX-9",
        CONNECTX9_SWITCH = 0x228 => "ConnectX-9 PCIe switch",
        SWITCH_IB = 0x247 => "Switch-IB",
        SPECTRUM = 0x249 => "Spectrum",
        SWITCH_IB2 = 0x24b => "Switch-IB 2",
        QUANTUM = 0x24d => "Quantum",
        SPECTRUM2 = 0x24e => "Spectrum-2",
        SPECTRUM3 = 0x250 => "Spectrum-3",
        GEARBOX = 0x252 => "Amos gearbox",
        GEARBOX_MANAGER = 0x253 => "Amos gearbox manager",
        SPECTRUM4 = 0x254 => "Spectrum-4",
        ABIR_GEARBOX = 0x256 => "Abir gearbox",
        QUANTUM2 = 0x257 => "Quantum-2",
        QUANTUM3 = 0x25b => "Quantum-3",
        SPECTRUM5 = 0x270 => "Spectrum-5",
        SPECTRUM6 = 0x274 => "Spectrum-6",
        NVLINK6_SWITCH = 0x278 => "NVLink 6 switch",
        ARCUSE = 0xb200 => "ArcusE",
    }
}

impl HwId {
    /// Whether it is an InfiniBand switch of the first generation, which has one GUID and no
    /// second port.
    #[must_use]
    pub fn is_switch_ib(self) -> bool {
        matches!(self, Self::SWITCH_IB | Self::SWITCH_IB2)
    }

    /// Whether it is a switch or a gearbox, and not an adapter.
    #[must_use]
    pub fn is_switch(self) -> bool {
        (0x247..0x300).contains(&self.get())
    }

    /// Whether DEV_INFO and MFG_INFO always have one base for all ports, whatever their version.
    #[must_use]
    pub fn has_extended_guids(self) -> bool {
        matches!(
            self,
            Self::SPECTRUM4
                | Self::SPECTRUM5
                | Self::SPECTRUM6
                | Self::QUANTUM3
                | Self::NVLINK6_SWITCH
        )
    }
}
