//! The header that every MAD starts with (IBTA 13.4.2).

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be32, Be64, assert_layout, open_enum};

open_enum! {
    /// Who a MAD is for (IBTA 13.4.4).
    #[doc(alias = "IB_MCLASS_SUBN_LID")]
    pub struct MgmtClass: u8 {
        /// Subnet management, routed by LID.
        SUBN_LID = 0x01 => "SubnLid",
        /// Subnet administration.
        SUBN_ADM = 0x03 => "SubnAdm",
        /// Performance management.
        PERF = 0x04 => "Perf",
        /// Communication management.
        CM = 0x07 => "Cm",
        /// Subnet management by a directed route.
        SUBN_DR = 0x81 => "SubnDr",
    }
}

open_enum! {
    /// What a MAD asks for or answers (IBTA 13.4.5). The top bit says that it is a response.
    #[doc(alias = "IB_MAD_METHOD_GET")]
    pub struct Method: u8 {
        GET = 0x01 => "Get",
        SET = 0x02 => "Set",
        SEND = 0x03 => "Send",
        TRAP = 0x05 => "Trap",
        REPORT = 0x06 => "Report",
        TRAP_REPRESS = 0x07 => "TrapRepress",
        GET_TABLE = 0x12 => "GetTable",
        DELETE = 0x15 => "Delete",
        GET_RESP = 0x81 => "GetResp",
        REPORT_RESP = 0x86 => "ReportResp",
        GET_TABLE_RESP = 0x92 => "GetTableResp",
        DELETE_RESP = 0x95 => "DeleteResp",
    }
}

impl Method {
    /// Whether the R bit is set.
    #[must_use]
    pub const fn is_response(self) -> bool {
        self.get() & 0x80 != 0
    }
}

open_enum! {
    /// What a MAD is about. Numbers are those of subnet management; other classes reuse them.
    #[doc(alias = "IB_ATTR_NODE_INFO")]
    pub struct AttributeId: Be16 as u16 {
        CLASS_PORT_INFO = 0x0001 => "ClassPortInfo",
        NOTICE = 0x0002 => "Notice",
        NODE_DESCRIPTION = 0x0010 => "NodeDescription",
        NODE_INFO = 0x0011 => "NodeInfo",
        SWITCH_INFO = 0x0012 => "SwitchInfo",
        GUID_INFO = 0x0014 => "GUIDInfo",
        PORT_INFO = 0x0015 => "PortInfo",
        PKEY_TABLE = 0x0016 => "P_KeyTable",
        SL_TO_VL = 0x0017 => "SLtoVLMappingTable",
        VL_ARBITRATION = 0x0018 => "VLArbitrationTable",
        LINEAR_FORWARDING = 0x0019 => "LinearForwardingTable",
        MULTICAST_FORWARDING = 0x001b => "MulticastForwardingTable",
        SM_INFO = 0x0020 => "SMInfo",
        /// Mellanox: the FDR10 bit.
        MLNX_EXT_PORT_INFO = 0xff90 => "MlnxExtPortInfo",
    }
}

/// How a request ended, as the answerer says (IBTA 13.4.7). In a directed-route SMP the top bit is
/// the direction and no part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Status(u16);

impl Status {
    /// All is well.
    pub const OK: Self = Self(0);

    /// From the 16 bits of the header; the direction bit is dropped for directed routes.
    #[must_use]
    pub const fn of(header: &MadHeader) -> Self {
        let mask = if header.mgmt_class.get() == MgmtClass::SUBN_DR.get() {
            0x7fff
        } else {
            0xffff
        };
        Self(header.status.get() & mask)
    }

    /// From a number.
    #[must_use]
    pub const fn new(value: u16) -> Self {
        Self(value)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Whether the request was done.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// Whether the answerer is busy and the request is to be repeated.
    #[must_use]
    pub const fn is_busy(self) -> bool {
        self.0 & 1 != 0
    }

    /// What the common bits say, in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        if self.is_busy() {
            return "busy";
        }
        if self.0 & 2 != 0 {
            return "redirect required";
        }
        match (self.0 >> 2) & 7 {
            0 if self.0 == 0 => "ok",
            0 => "class specific",
            1 => "class or version not supported",
            2 => "method not supported",
            3 => "method and attribute not supported together",
            7 => "a field of the attribute is not valid",
            _ => "reserved",
        }
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#06x} ({})", self.0, self.text())
    }
}

/// The common header.
///
/// ```text
/// 0  base version   1  class   2  class version   3  method
/// 4  status                    6  class specific (directed route: hop pointer, hop count)
/// 8  transaction id
/// 16 attribute id              18 reserved
/// 20 attribute modifier
/// ```
#[doc(alias = "ib_mad")]
#[doc(alias = "umad_hdr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MadHeader {
    /// 1.
    pub base_version: u8,
    /// Who it is for.
    pub mgmt_class: MgmtClass,
    /// 1 for subnet management, 2 for subnet administration.
    pub class_version: u8,
    /// What it asks for.
    pub method: Method,
    /// See [`Status::of`].
    pub status: Be16,
    /// Directed route: hop pointer and hop count.
    pub class_specific: Be16,
    /// What pairs an answer with its request. Only the low 32 bits are a client's own: the kernel
    /// and ibsim overwrite the others.
    pub tid: Be64,
    /// What it is about.
    pub attribute_id: AttributeId,
    /// Zero.
    pub reserved: Be16,
    /// Which part of it: a port, a block.
    pub attribute_modifier: Be32,
}
assert_layout!(MadHeader, 24);
