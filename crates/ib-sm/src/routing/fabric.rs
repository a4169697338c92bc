//! What is routed: switches, the ports of adapters and routers, cables, LIDs and virtual lanes.

use ib_mad::id::Guid;

/// The highest unicast LID.
pub const MAX_LID: u16 = 0xbfff;

/// Where a cable leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// To a port of a switch.
    Switch {
        /// Its place in [`Fabric::switches`].
        switch: u32,
        /// The port, from 1.
        port: u8,
    },
    /// To an end port, by its place in [`Fabric::ends`].
    End(u32),
}

/// What a cable can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Data virtual lanes that both ends have: 1, 2, 4, 8 or 15.
    pub vls: u8,
    /// What it is sold as, Gb/s; 0 where that is not known.
    pub gbps: u16,
}

impl Default for Link {
    /// Eight lanes, and a speed that is not known.
    fn default() -> Self {
        Self { vls: 8, gbps: 0 }
    }
}

/// A port of a switch that holds a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The other end.
    pub peer: Place,
    /// The cable.
    pub link: Link,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its GUID.
    pub guid: Guid,
    /// Its name, for people.
    pub name: String,
    /// The LID of its port 0; 0 where it has none, and then nothing is routed to it.
    pub lid: u16,
    /// Port 0 answers to 2^lmc LIDs.
    pub lmc: u8,
    /// How many ports it has, without port 0.
    pub ports: u8,
}

/// What an end port belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndKind {
    /// A channel adapter.
    Adapter,
    /// A router.
    Router,
}

/// A port of an adapter or of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// What it belongs to.
    pub kind: EndKind,
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The GUID of the port.
    pub port_guid: Guid,
    /// The name of the node, for people.
    pub name: String,
    /// The number of the port.
    pub port: u8,
    /// Its LID; 0 where it has none, and then nothing is routed to it.
    pub lid: u16,
    /// It answers to 2^lmc LIDs.
    pub lmc: u8,
}

/// Something that has LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Port 0 of a switch.
    Switch(u32),
    /// An end port.
    End(u32),
}

/// A fabric cannot be routed as it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A LID that is no unicast LID, or a range of them that ends beyond.
    #[error("{guid} has LID {lid} with LMC {lmc}, beyond the unicast LIDs 1 to 49151")]
    LidRange {
        /// The port.
        guid: Guid,
        /// Its base LID.
        lid: u16,
        /// Its LMC.
        lmc: u8,
    },
    /// Two ports answer to one LID.
    #[error("LID {lid} belongs to {first} and to {second}")]
    LidTwice {
        /// The LID.
        lid: u16,
        /// The port that has it first.
        first: Guid,
        /// The other one.
        second: Guid,
    },
    /// A cable at a place that there is not.
    #[error("a cable ends at {place:?}, which there is not")]
    NoPlace {
        /// The place.
        place: Place,
    },
    /// Two cables in a port.
    #[error("two cables end at {place:?}")]
    TwoCables {
        /// The place.
        place: Place,
    },
}

const NONE: u32 = u32::MAX;

/// A fabric, ready to be routed.
///
/// Made by whoever knows one: [`Fabric::of_topology`] takes a discovered one. What is not plain is
/// only that a switch's ports are those with a cable whose link is up, and that LIDs have been
/// given: routing gives none.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    switches: Vec<Switch>,
    ends: Vec<End>,
    /// Where each switch's ports begin in `ports`; port 0 is the first.
    base: Vec<u32>,
    ports: Vec<Option<Port>>,
    /// Where each end port is plugged in, and with what cable.
    plugs: Vec<Option<Port>>,
    /// By LID: switches from 0, end ports from the number of switches.
    owner: Vec<u32>,
    cables: Vec<(Place, Place, Link)>,
}

impl Fabric {
    /// An empty one, to be filled by [`add_switch`](Self::add_switch), [`add_end`](Self::add_end) and
    /// [`connect`](Self::connect), and then closed by [`finish`](Self::finish).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a switch and returns its place.
    pub fn add_switch(&mut self, switch: Switch) -> u32 {
        self.switches.push(switch);
        u32::try_from(self.switches.len() - 1).unwrap_or(NONE)
    }

    /// Adds a port of an adapter or router and returns its place.
    pub fn add_end(&mut self, end: End) -> u32 {
        self.ends.push(end);
        u32::try_from(self.ends.len() - 1).unwrap_or(NONE)
    }

    /// Adds a cable. Both ends must exist by the time of [`finish`](Self::finish).
    pub fn connect(&mut self, a: Place, b: Place, link: Link) {
        self.cables.push((a, b, link));
    }

    /// Closes it: cables are plugged, LIDs are looked up.
    ///
    /// # Errors
    /// Where a cable ends nowhere or where there is one already, or LIDs collide or are none.
    pub fn finish(mut self) -> Result<Self, FabricError> {
        self.base.clear();
        let mut total = 0_u32;
        for switch in &self.switches {
            self.base.push(total);
            total += u32::from(switch.ports) + 1;
        }
        self.base.push(total);
        self.ports = vec![None; total as usize];
        self.plugs = vec![None; self.ends.len()];
        for (a, b, link) in std::mem::take(&mut self.cables) {
            self.plug(a, b, link)?;
            if a != b {
                self.plug(b, a, link)?;
            }
        }
        self.own()?;
        Ok(self)
    }

    fn plug(&mut self, at: Place, peer: Place, link: Link) -> Result<(), FabricError> {
        let slot = match at {
            Place::Switch { switch, port } => {
                let known = self.switches.get(switch as usize);
                if !known.is_some_and(|it| (1..=it.ports.min(254)).contains(&port)) {
                    return Err(FabricError::NoPlace { place: at });
                }
                self.base
                    .get(switch as usize)
                    .and_then(|&base| self.ports.get_mut(base as usize + usize::from(port)))
            }
            Place::End(end) => self.plugs.get_mut(end as usize),
        };
        match slot {
            None => Err(FabricError::NoPlace { place: at }),
            Some(Some(_)) => Err(FabricError::TwoCables { place: at }),
            Some(empty) => {
                *empty = Some(Port { peer, link });
                Ok(())
            }
        }
    }

    fn own(&mut self) -> Result<(), FabricError> {
        let switches = self.switches.iter().map(|it| (it.guid, it.lid, it.lmc));
        let ends = self.ends.iter().map(|it| (it.port_guid, it.lid, it.lmc));
        let all: Vec<(Guid, u16, u8)> = switches.chain(ends).collect();
        let mut owner = Vec::new();
        for (number, &(guid, lid, lmc)) in (0_u32..).zip(&all) {
            if lid == 0 {
                continue;
            }
            let first = usize::from(lid);
            let count = 1_usize.checked_shl(u32::from(lmc)).unwrap_or(usize::MAX);
            if lmc > 7 || first + count - 1 > usize::from(MAX_LID) {
                return Err(FabricError::LidRange { guid, lid, lmc });
            }
            if owner.len() < first + count {
                owner.resize(first + count, NONE);
            }
            for (lid, slot) in (lid..).zip(owner.iter_mut().skip(first).take(count)) {
                if let Some(&(first, ..)) = all.get(*slot as usize) {
                    return Err(FabricError::LidTwice {
                        lid,
                        first,
                        second: guid,
                    });
                }
                *slot = number;
            }
        }
        self.owner = owner;
        Ok(())
    }

    /// The switches.
    #[must_use]
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// The ports of adapters and routers.
    #[must_use]
    pub fn ends(&self) -> &[End] {
        &self.ends
    }

    /// A port of a switch; none where it holds no cable.
    #[must_use]
    pub fn port(&self, switch: u32, port: u8) -> Option<&Port> {
        self.ports_of(switch).get(usize::from(port))?.as_ref()
    }

    /// The ports of a switch by their numbers, from the empty 0 on.
    #[must_use]
    pub fn ports_of(&self, switch: u32) -> &[Option<Port>] {
        let at = switch as usize;
        let (Some(&from), Some(&to)) = (self.base.get(at), self.base.get(at + 1)) else {
            return &[];
        };
        self.ports.get(from as usize..to as usize).unwrap_or(&[])
    }

    /// Where an end port is plugged in.
    #[must_use]
    pub fn plug_of(&self, end: u32) -> Option<&Port> {
        self.plugs.get(end as usize)?.as_ref()
    }

    /// The switch and port that an end port hangs at; none where there is no cable or no switch.
    #[must_use]
    pub fn attachment(&self, end: u32) -> Option<(u32, u8)> {
        match self.plug_of(end)?.peer {
            Place::Switch { switch, port } => Some((switch, port)),
            Place::End(_) => None,
        }
    }

    /// Who answers to a LID.
    #[must_use]
    pub fn owner(&self, lid: u16) -> Option<Owner> {
        let number = *self.owner.get(usize::from(lid))?;
        let switches = u32::try_from(self.switches.len()).unwrap_or(NONE);
        if number == NONE {
            None
        } else if number < switches {
            Some(Owner::Switch(number))
        } else {
            Some(Owner::End(number - switches))
        }
    }

    /// The highest LID that is in use; 0 where none is.
    #[must_use]
    pub fn top_lid(&self) -> u16 {
        u16::try_from(self.owner.len().saturating_sub(1)).unwrap_or(0)
    }

    /// Every LID in use with the switch where its way ends and the port there: 0 where the switch
    /// itself is meant. In the order of the LIDs.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        (0..=self.top_lid()).filter_map(|lid| {
            let owner = self.owner(lid)?;
            let (switch, port) = match owner {
                Owner::Switch(switch) => (switch, 0),
                Owner::End(end) => self.attachment(end)?,
            };
            let base = match owner {
                Owner::Switch(switch) => self.switches.get(switch as usize)?.lid,
                Owner::End(end) => self.ends.get(end as usize)?.lid,
            };
            Some(Target {
                lid,
                path: u8::try_from(lid - base).unwrap_or(0),
                owner,
                switch,
                port,
            })
        })
    }

    /// Data virtual lanes that every cable between switches has: at least 1, and 15 where there is
    /// no such cable.
    #[must_use]
    pub fn vls(&self) -> u8 {
        self.ports
            .iter()
            .flatten()
            .filter(|port| matches!(port.peer, Place::Switch { .. }))
            .map(|port| port.link.vls)
            .min()
            .unwrap_or(15)
            .clamp(1, 15)
    }
}

/// A LID and where its way ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The LID.
    pub lid: u16,
    /// Which of its owner's LIDs it is: 0 is the base LID.
    pub path: u8,
    /// Whose it is.
    pub owner: Owner,
    /// The last switch on the way.
    pub switch: u32,
    /// The port there; 0 for the switch itself.
    pub port: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(guid: u64, lid: u16) -> Switch {
        Switch {
            guid: Guid::new(guid),
            name: String::new(),
            lid,
            lmc: 0,
            ports: 4,
        }
    }

    fn end(guid: u64, lid: u16, lmc: u8) -> End {
        End {
            kind: EndKind::Adapter,
            node_guid: Guid::new(guid),
            port_guid: Guid::new(guid + 1),
            name: String::new(),
            port: 1,
            lid,
            lmc,
        }
    }

    #[test]
    fn a_range_of_lids_belongs_to_one_port() {
        let mut fabric = Fabric::new();
        let s = fabric.add_switch(switch(1, 1));
        let e = fabric.add_end(end(16, 4, 2));
        let at = Place::Switch { switch: s, port: 3 };
        fabric.connect(Place::End(e), at, Link::default());
        let fabric = fabric.finish().unwrap();
        assert_eq!(fabric.top_lid(), 7);
        let targets: Vec<_> = fabric
            .targets()
            .map(|t| (t.lid, t.switch, t.port))
            .collect();
        assert_eq!(
            targets,
            [(1, 0, 0), (4, 0, 3), (5, 0, 3), (6, 0, 3), (7, 0, 3)]
        );
        assert_eq!(fabric.owner(3), None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut twice = Fabric::new();
        twice.add_switch(switch(1, 5));
        twice.add_end(end(16, 4, 2));
        assert!(matches!(
            twice.finish(),
            Err(FabricError::LidTwice { lid: 5, .. })
        ));
        let mut beyond = Fabric::new();
        beyond.add_end(end(16, 0xbfff, 1));
        assert!(matches!(beyond.finish(), Err(FabricError::LidRange { .. })));
        let mut cable = Fabric::new();
        let s = cable.add_switch(switch(1, 1));
        let at = |port| Place::Switch { switch: s, port };
        cable.connect(at(1), at(5), Link::default());
        assert!(matches!(cable.finish(), Err(FabricError::NoPlace { .. })));
    }
}
