//! The packet itself: 256 bytes, routed by its own list of ports.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be32, Be64, assert_layout};

use crate::MAD_LEN;
use crate::header::{AttributeId, MadHeader, Method, MgmtClass, Status};
use crate::id::Lid;

use super::{
    DrPath, GuidInfo, LinearForwarding, MlnxExtPortInfo, MulticastForwarding, NodeDescription,
    NodeInfo, Notice, PKeyTable, PortInfo, SlToVl, SmInfo, SwitchInfo, VlArbitration,
};

/// The bytes of an attribute within a subnet management packet.
#[doc(alias = "IB_SMP_DATA_SIZE")]
pub const SMP_DATA_LEN: usize = 64;

/// A subnet management packet with a directed route (IBTA 14.2.1.2).
///
/// ```text
/// 0   header; its status' top bit is the direction, then hop pointer and hop count
/// 24  M_Key
/// 32  DrSLID            34 DrDLID
/// 36  reserved
/// 64  attribute
/// 128 initial path: out-port of hop 1 at [1]
/// 192 return path
/// ```
#[doc(alias = "umad_smp")]
#[doc(alias = "ib_smp")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Smp {
    /// The common header.
    pub header: MadHeader,
    /// The key that the port may ask for.
    pub m_key: Be64,
    /// Permissive where the whole route is directed.
    pub dr_slid: Lid,
    /// Permissive where the whole route is directed.
    pub dr_dlid: Lid,
    /// Zero.
    pub reserved: [u8; 28],
    /// The attribute.
    pub data: [u8; SMP_DATA_LEN],
    /// The way there; entry 0 is not used.
    pub initial_path: [u8; 64],
    /// The way back, filled in on the way there.
    pub return_path: [u8; 64],
}
assert_layout!(Smp, MAD_LEN);

/// What fits into the data of an SMP, and the number it goes by.
pub trait Attribute: Pod {
    /// Its number.
    const ID: AttributeId;
}

impl Attribute for NodeInfo {
    const ID: AttributeId = AttributeId::NODE_INFO;
}
impl Attribute for NodeDescription {
    const ID: AttributeId = AttributeId::NODE_DESCRIPTION;
}
impl Attribute for PortInfo {
    const ID: AttributeId = AttributeId::PORT_INFO;
}
impl Attribute for SwitchInfo {
    const ID: AttributeId = AttributeId::SWITCH_INFO;
}
impl Attribute for GuidInfo {
    const ID: AttributeId = AttributeId::GUID_INFO;
}
impl Attribute for MlnxExtPortInfo {
    const ID: AttributeId = AttributeId::MLNX_EXT_PORT_INFO;
}

impl Attribute for SmInfo {
    const ID: AttributeId = AttributeId::SM_INFO;
}
impl Attribute for Notice {
    const ID: AttributeId = AttributeId::NOTICE;
}
impl Attribute for LinearForwarding {
    const ID: AttributeId = AttributeId::LINEAR_FORWARDING;
}
impl Attribute for MulticastForwarding {
    const ID: AttributeId = AttributeId::MULTICAST_FORWARDING;
}
impl Attribute for SlToVl {
    const ID: AttributeId = AttributeId::SL_TO_VL;
}
impl Attribute for VlArbitration {
    const ID: AttributeId = AttributeId::VL_ARBITRATION;
}
impl Attribute for PKeyTable {
    const ID: AttributeId = AttributeId::PKEY_TABLE;
}

impl Smp {
    /// A Get by a wholly directed route. The transaction id is the client's to fill in.
    #[must_use]
    pub fn get(path: &DrPath, attribute: AttributeId, modifier: u32) -> Self {
        Self {
            header: MadHeader {
                base_version: 1,
                mgmt_class: MgmtClass::SUBN_DR,
                class_version: 1,
                method: Method::GET,
                status: Be16::ZERO,
                class_specific: Be16::new(u16::from(path.hops())),
                tid: Be64::ZERO,
                attribute_id: attribute,
                reserved: Be16::ZERO,
                attribute_modifier: Be32::new(modifier),
            },
            m_key: Be64::ZERO,
            dr_slid: Lid::PERMISSIVE,
            dr_dlid: Lid::PERMISSIVE,
            reserved: [0; 28],
            data: [0; SMP_DATA_LEN],
            initial_path: path.to_bytes(),
            return_path: [0; 64],
        }
    }

    /// A Set by a wholly directed route.
    #[must_use]
    pub fn set<T: Attribute>(path: &DrPath, modifier: u32, value: &T) -> Self {
        let mut smp = Self::get(path, T::ID, modifier);
        smp.header.method = Method::SET;
        smp.set_attribute(value);
        smp
    }

    /// The same packet with a key.
    #[must_use]
    pub const fn with_m_key(mut self, m_key: u64) -> Self {
        self.m_key = Be64::new(m_key);
        self
    }

    /// The answer to this request, as a program that sits behind the agent sends it: the way back is
    /// in the packet.
    #[must_use]
    pub fn answer<T: Attribute>(&self, value: &T) -> Self {
        let mut smp = *self;
        smp.header.method = Method::GET_RESP;
        let directed = self.header.mgmt_class == MgmtClass::SUBN_DR;
        smp.header.status = Be16::new(if directed { 0x8000 } else { 0 });
        smp.data = [0; SMP_DATA_LEN];
        smp.set_attribute(value);
        smp
    }

    /// Views the bytes of a MAD.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; MAD_LEN]) -> &Self {
        bytemuck::must_cast_ref(bytes)
    }

    /// The bytes as they stand on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; MAD_LEN] {
        bytemuck::must_cast(self)
    }

    /// How the request ended.
    #[must_use]
    pub const fn status(&self) -> Status {
        Status::of(&self.header)
    }

    /// Views the data as an attribute. Whether it is that attribute is the caller's to know.
    #[must_use]
    pub fn attribute<T: Attribute>(&self) -> &T {
        const {
            assert!(
                size_of::<T>() <= SMP_DATA_LEN,
                "an attribute has 64 bytes at most"
            );
            assert!(align_of::<T>() == 1, "a wire structure has alignment 1");
        }
        let (head, _) = self.data.split_at(size_of::<T>());
        bytemuck::from_bytes(head)
    }

    /// Fills in the attribute.
    pub fn set_attribute<T: Attribute>(&mut self, value: &T) {
        let bytes = bytemuck::bytes_of(value);
        for (to, from) in self.data.iter_mut().zip(bytes) {
            *to = *from;
        }
    }
}
