//! A port whose answers are made from bytes; the fuzz target `discovery` uses it as well.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::Time;
use ib_mad::header::{AttributeId, Method};
use ib_mad::id::Guid;
use ib_mad::port::{LocalPort, MadPort, Packet, PortError};
use ib_mad::smp::{NodeInfo, NodeType, PhysState, PortInfo};

/// One byte says how a request is answered, the next ones what stands in the answer:
///
/// - the low two bits 0: not at all;
/// - NodeInfo: bit 2 a switch, then one byte each for ports, local port and GUID (of 16);
/// - PortInfo: bit 3 the link is up;
/// - the high four bits: so many bytes are overwritten, each given by its place and value.
///
/// Where the bytes end, silence begins.
pub(crate) struct Scripted<'a> {
    local: LocalPort,
    now: Time,
    script: &'a [u8],
    answers: VecDeque<Packet>,
}

impl<'a> Scripted<'a> {
    /// A port that answers by this script.
    pub(crate) fn new(script: &'a [u8]) -> Self {
        Self {
            local: LocalPort::new("script", 1),
            now: Time::ZERO,
            script,
            answers: VecDeque::new(),
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (&byte, rest) = self.script.split_first()?;
        self.script = rest;
        Some(byte)
    }

    fn answer(&mut self, packet: &Packet) -> Option<Packet> {
        let how = self.next()?;
        if how & 3 == 0 {
            return None;
        }
        let mut smp = *packet.smp();
        smp.header.method = Method::GET_RESP;
        smp.header.status.set(0x8000);
        match smp.header.attribute_id {
            AttributeId::NODE_INFO => {
                let mut info: NodeInfo = *smp.attribute();
                info.node_type = if how & 4 != 0 {
                    NodeType::SWITCH
                } else {
                    NodeType::CA
                };
                info.num_ports = self.next()?;
                info.local_port = self.next()?;
                info.node_guid = Guid::new(u64::from(self.next()? & 15) + 1);
                info.port_guid = info.node_guid;
                smp.set_attribute(&info);
            }
            AttributeId::PORT_INFO => {
                let mut info: PortInfo = *smp.attribute();
                let state = if how & 8 != 0 {
                    PhysState::LINK_UP
                } else {
                    PhysState::POLLING
                };
                info.phys.set_phys_state(state.get());
                smp.set_attribute(&info);
            }
            _ => {}
        }
        let mut mad = smp.to_bytes();
        for _ in 0..how >> 4 {
            let (place, value) = (self.next()?, self.next()?);
            if let Some(byte) = mad.get_mut(usize::from(place)) {
                *byte = value;
            }
        }
        Some(Packet { mad, ..*packet })
    }
}

impl MadPort for Scripted<'_> {
    fn local(&self) -> &LocalPort {
        &self.local
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        let answer = self.answer(packet);
        self.answers.extend(answer);
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        let packet = self.answers.pop_front();
        if packet.is_none() {
            self.now = self.now + wait;
        }
        Ok(packet)
    }
}

/// Walks the fabric that a script pretends to be, and reports on it in every form.
pub(crate) fn walk(script: &[u8]) -> Option<ib_sm::core::discovery::Discovered> {
    let config = ib_sm::core::discovery::Config {
        window: 4,
        timeout: Duration::from_millis(1),
        retries: 1,
        max_nodes: 64,
        ..Default::default()
    };
    let found = ib_sm::run::driver::discover(&mut Scripted::new(script), config, |_| {}).ok()?;
    assert!(found.topology.nodes().len() <= 64);
    let report = ib_sm::diag::report::TopologyReport::new("script", &found);
    assert_eq!(report.links.len(), report.summary.links);
    for group in [false, true] {
        let options = ib_sm::diag::ibnetdiscover::Options {
            full: true,
            group,
            date: "",
        };
        let mut text = String::new();
        ib_sm::diag::ibnetdiscover::write(&found.topology, &options, &mut text).ok()?;
        assert!(text.is_ascii());
    }
    for port in found.topology.ports() {
        if let Some((_, peer)) = found.topology.peer_of(port) {
            let back = found.topology.peer_of(peer).map(|(_, port)| port);
            assert_eq!(back, Some(port), "a cable has two ends");
        }
    }
    Some(found)
}
