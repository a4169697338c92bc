//! Subnet management packets (IBTA 14.2).

mod dr_path;
mod ext_port_info;
mod guid_info;
mod link;
mod node_desc;
mod node_info;
mod notice;
mod packet;
mod port_info;
mod sm_info;
mod switch_info;
mod table;

pub use dr_path::{DrPath, DrPathError, MAX_HOPS};
pub use ext_port_info::{MlnxExtPortInfo, MlnxLinkSpeed};
pub use guid_info::GuidInfo;
pub use link::{LinkSpeed, LinkWidth, SpeedFacts};
pub use node_desc::NodeDescription;
pub use node_info::{NodeInfo, NodeType};
pub use notice::{
    AddressDetails, BadMKeyDetails, LocalChangeDetails, LocalChanges, Notice, NoticeCount,
    NoticeKind, PortDetails, SystemImageDetails, TrapNumber,
};
pub use packet::{Attribute, SMP_DATA_LEN, Smp};
pub use port_info::{
    CapabilityMask, CapabilityMask2, ErrorThresholds, ExtSpeed2, ExtSpeedActive, ExtSpeedEnabled,
    LinkSpeeds, MkeyLmc, MtuCap, MtuSmSl, PhysState, PortInfo, PortState, PortStateByte, RespTime,
    StallLife, StateByte, SubnetTimeout, VlCap, VlEnforce,
};
pub use sm_info::{PriorityState, SmControl, SmInfo, SmState};
pub use switch_info::{SwitchFlags, SwitchInfo, SwitchLife};
pub use table::{
    LinearForwarding, MulticastForwarding, PKeyTable, SlToVl, VlArbitration, VlWeight,
};
