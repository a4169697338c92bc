//! The reader of net files and of ibnetdiscover dumps.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::line::{after, assigned, bracketed, guid, label, number, quoted, ranged, short, syntax};
use super::{FileError, FileFault, Format, MAX_INCLUDE, Options, Parsed};
use crate::error::TopologyError;
use crate::topo::{Kind, Node, Peer, Port, Speeds, Widths};

/// Reads a net file.
pub(super) fn read(
    name: &str,
    text: &[u8],
    options: &Options,
    include: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Parsed, FileError> {
    let mut reader = Reader::new(options, include);
    let lines = reader.file(name, text, 0)?;
    reader.connect()?;
    if reader.parsed.topology.nodes().is_empty() {
        return Err(FileError {
            file: name.to_owned(),
            line: lines.max(1),
            fault: FileFault::Empty,
        });
    }
    Ok(reader.parsed)
}

/// Where a line stands: an index into `Reader::files`, and its number.
type Place = (usize, usize);

/// Where a port line says the cable leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// A node's id and a port.
    Node(String, u64),
    /// An alias, with its prefix.
    Alias(String),
    /// Nowhere: the line gives the port this alias.
    Own(String),
}

/// What a port line says.
#[derive(Debug)]
struct PortLine {
    port: Port,
    target: Target,
}

/// A port line, until all nodes are known.
#[derive(Debug)]
struct Cable {
    near: Peer,
    target: Target,
    place: Place,
}

/// The node that port lines belong to.
#[derive(Debug)]
struct Current {
    node: usize,
    /// The line of each port so far, and its cable.
    seen: BTreeMap<u8, (usize, usize)>,
}

struct Reader<'a> {
    options: &'a Options,
    include: &'a mut dyn FnMut(&str) -> Option<Vec<u8>>,
    parsed: Parsed,
    files: Vec<String>,
    cables: Vec<Cable>,
    aliases: BTreeMap<String, Peer>,
    current: Option<Current>,
    prefix: String,
    vendor_id: u32,
    device_id: u16,
    system_guid: u64,
    /// The base that `guid+offset` counts from and the next GUID, for CAs, switches and routers.
    guids: [(u64, u64); 3],
    widths: Widths,
    speeds: (u8, u8),
}

impl<'a> Reader<'a> {
    fn new(options: &'a Options, include: &'a mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Self {
        Self {
            options,
            include,
            parsed: Parsed::new(Format::Net),
            files: Vec::new(),
            cables: Vec::new(),
            aliases: BTreeMap::new(),
            current: None,
            prefix: String::new(),
            vendor_id: 0,
            device_id: 0,
            system_guid: 0,
            guids: [
                (0x10_0000, 0x10_0000),
                (0x20_0000, 0x20_0000),
                (0x30_0000, 0x30_0000),
            ],
            widths: Widths::X4,
            speeds: (1, 0),
        }
    }

    /// Reads one file, and those that it includes, and returns how many lines it has.
    fn file(&mut self, name: &str, text: &[u8], depth: usize) -> Result<usize, FileError> {
        let file = self.files.len();
        self.files.push(name.to_owned());
        let mut count = 0;
        for (number, line) in (1..).zip(text.split(|b| *b == b'\n')) {
            count = number;
            let line = String::from_utf8_lossy(line);
            self.line(line.trim_end(), (file, number), depth)?;
        }
        self.current = None;
        Ok(count)
    }

    fn error(&self, place: Place, fault: impl Into<FileFault>) -> FileError {
        let file = self.files.get(place.0).cloned().unwrap_or_default();
        FileError {
            file,
            line: place.1,
            fault: fault.into(),
        }
    }

    fn warn(&mut self, place: Place, text: impl FnOnce() -> String) {
        let file = self.files.get(place.0).map_or("", String::as_str);
        self.parsed.warn(file, place.1, text);
    }

    fn line(&mut self, line: &str, place: Place, depth: usize) -> Result<(), FileError> {
        if line.starts_with('#') {
            return Ok(());
        }
        if line.starts_with(['[', '@']) {
            return self.port(line, place);
        }
        self.current = None;
        let kinds = [
            ("Switch", Kind::Switch),
            ("Hca", Kind::Ca),
            ("Ca", Kind::Ca),
            ("Rt", Kind::Router),
        ];
        for (word, kind) in kinds {
            if let Some(rest) = line
                .strip_prefix(word)
                .filter(|rest| rest.starts_with([' ', '\t']))
            {
                return self.node(kind, rest, place);
            }
        }
        if line.starts_with("include") {
            return self.include(line, place, depth);
        }
        if line.starts_with("do ") {
            self.warn(place, || {
                format!("console command not carried out: {}", short(line))
            });
            return Ok(());
        }
        self.setting(line).map_err(|fault| self.error(place, fault))
    }

    /// An assignment before a node.
    fn setting(&mut self, line: &str) -> Result<(), FileFault> {
        let guids = [
            ("switchguid", 1),
            ("hcaguids", 0),
            ("caguid", 0),
            ("rtguid", 2),
        ];
        for (word, slot) in guids {
            if let Some(rest) = line.strip_prefix(word) {
                let at = rest
                    .find(['=', '+'])
                    .ok_or_else(|| syntax("= or +", rest))?;
                let (sign, value) = rest
                    .split_at_checked(at)
                    .map_or(("", ""), |(_, v)| v.split_at_checked(1).unwrap_or(("", "")));
                let (value, _) = number(value).ok_or_else(|| syntax("a GUID", value))?;
                if let Some((base, next)) = self.guids.get_mut(slot) {
                    if sign == "+" {
                        *next = base.wrapping_add(value);
                    } else {
                        (*base, *next) = (value, value);
                    }
                }
                return Ok(());
            }
        }
        if line.starts_with("vendid") {
            let (id, _) = ranged("a vendor id", assigned(line)?, 0, 0xff_ffff)?;
            self.vendor_id = u32::try_from(id).unwrap_or(0);
        } else if line.starts_with("devid") {
            let (id, _) = ranged("a device id", assigned(line)?, 0, 0xffff)?;
            self.device_id = u16::try_from(id).unwrap_or(0);
        } else if line.starts_with("sysimgguid") {
            let value = assigned(line)?;
            (self.system_guid, _) = number(value).ok_or_else(|| syntax("a GUID", value))?;
        } else if line.starts_with("width=") {
            self.widths = widths(assigned(line)?)?;
        } else if line.starts_with("speed=") {
            self.speeds.0 = mask("an enabled speed", assigned(line)?, 1, 7)?;
        } else if line.starts_with("extspeed=") {
            self.speeds.1 = mask("an enabled extended speed", assigned(line)?, 0, 15)?;
        } else if line.starts_with("module=") {
            let (prefix, _) = quoted(line)
                .ok_or_else(|| syntax("a prefix in quotes", assigned(line).unwrap_or(line)))?;
            if prefix.len() > 20 || prefix.contains(['#', '@']) {
                return Err(syntax(
                    "a prefix of at most 20 bytes without '#' and '@'",
                    prefix,
                ));
            }
            prefix.clone_into(&mut self.prefix);
        }
        // Anything else is passed over, as ibsim does: titles, chassis lines, messages.
        Ok(())
    }

    fn include(&mut self, line: &str, place: Place, depth: usize) -> Result<(), FileError> {
        let (name, _) =
            quoted(line).ok_or_else(|| self.error(place, syntax("a file name in quotes", line)))?;
        if depth >= MAX_INCLUDE {
            return Err(self.error(place, FileFault::IncludeDepth { limit: MAX_INCLUDE }));
        }
        let text = (self.include)(name)
            .ok_or_else(|| self.error(place, FileFault::Include { name: short(name) }))?;
        self.file(name, &text, depth + 1)?;
        Ok(())
    }

    /// `Switch 36 "id" # "description" enhanced port 0 lid 15 lmc 0`.
    fn node(&mut self, kind: Kind, rest: &str, place: Place) -> Result<(), FileError> {
        let fail = |fault| self.error(place, fault);
        let (ports, rest) = ranged("a number of ports", rest, 1, 254).map_err(fail)?;
        let (id, rest) = quoted(rest).ok_or_else(|| fail(syntax("a node's id in quotes", rest)))?;
        if id.contains(['#', '@']) {
            return Err(fail(FileFault::Topology(TopologyError::Id {
                id: short(id),
            })));
        }
        let id = self.full_id(id);
        let (description, tail) = description(rest);
        let slot = match kind {
            Kind::Ca => 0,
            Kind::Switch => 1,
            Kind::Router => 2,
        };
        let ports = u8::try_from(ports).unwrap_or(u8::MAX);
        let mut node = Node::new(kind, id, 0, ports);
        if let Some((_, next)) = self.guids.get_mut(slot) {
            node.guid = *next;
            let taken = if kind == Kind::Switch {
                1
            } else {
                u64::from(ports) + 1
            };
            *next = next.wrapping_add(taken);
        }
        if !description.is_empty() {
            description.clone_into(&mut node.description);
        }
        node.system_guid = if self.system_guid == 0 {
            node.guid
        } else {
            self.system_guid
        };
        node.vendor_id = self.vendor_id;
        node.device_id = self.device_id;
        // As in ibsim, a vendor and a system GUID are for one node, a device id for all after it.
        (self.vendor_id, self.system_guid) = (0, 0);
        if kind == Kind::Switch {
            node.enhanced_port_zero = if tail.contains("enhanced port 0") {
                Some(true)
            } else if tail.contains("base port 0") {
                Some(false)
            } else {
                None
            };
            if let Some(port) = node.port_mut(0) {
                port.lid = lid(tail);
                port.lmc = lmc(tail);
            }
        }
        let node = self
            .parsed
            .topology
            .add(node)
            .map_err(|fault| self.error(place, fault))?;
        self.current = Some(Current {
            node,
            seen: BTreeMap::new(),
        });
        Ok(())
    }

    /// A port line.
    fn port(&mut self, line: &str, place: Place) -> Result<(), FileError> {
        let Some(node) = self
            .current
            .as_ref()
            .and_then(|c| Some((c.node, self.parsed.topology.node(c.node)?)))
        else {
            self.warn(place, || {
                format!("port line outside of a node: {}", short(line))
            });
            return Ok(());
        };
        let (index, node) = node;
        let (text, odd) = self
            .port_line(node, line)
            .map_err(|fault| self.error(place, fault))?;
        let near = Peer {
            node: index,
            port: text.port.number,
        };
        if let Some(label) = odd {
            self.warn(place, || format!("no rate known by the name {label:?}"));
        }
        let target = match text.target {
            Target::Own(alias) => {
                if self.aliases.insert(alias.clone(), near).is_some() {
                    return Err(self.error(place, FileFault::DuplicateAlias { alias }));
                }
                None
            }
            target => Some(target),
        };
        self.keep(near, text.port, target, place)
    }

    /// `[1](2c9030004e939) "S-f4521403005764b0"[2] # lid 27 lmc 0 "description" lid 174 4xQDR`,
    /// and the name of a rate that is not known.
    fn port_line(&self, node: &Node, line: &str) -> Result<(PortLine, Option<String>), FileFault> {
        let (is_alias, text) = line
            .strip_prefix('@')
            .map_or((false, line), |text| (true, text));
        let (number, rest) =
            bracketed(text).ok_or_else(|| syntax("a port number in brackets", text))?;
        let beyond = || FileFault::PortBeyond {
            id: node.id.clone(),
            port: number,
            count: node.port_count,
        };
        let number = u8::try_from(number)
            .ok()
            .filter(|p| *p > 0 && node.has_port(*p))
            .ok_or_else(beyond)?;
        let (own, rest) = guid(rest).map_or((None, rest), |(guid, rest)| (Some(guid), rest));
        let (peer, rest) = quoted(rest).ok_or_else(|| syntax("the peer's id in quotes", rest))?;
        let (remote, comment) = rest.split_once('#').unwrap_or((rest, ""));
        let target = if is_alias {
            Target::Own(format!("{}@{peer}", self.prefix))
        } else if peer.contains('@') {
            Target::Alias(if peer.starts_with('@') {
                format!("{}{peer}", self.prefix)
            } else {
                peer.to_owned()
            })
        } else {
            let port = match bracketed(remote) {
                Some((port, _)) => port,
                None if remote.trim_start().starts_with('[') => {
                    return Err(syntax("the peer's port number", remote));
                }
                None => 1,
            };
            let id = match peer.split_once('#') {
                Some((module, id)) => format!("{module}.{id}"),
                None => self.full_id(peer),
            };
            Target::Node(id, port)
        };

        let mut port = Port::new(number);
        port.guid = own.filter(|guid| *guid != node.default_port_guid(number));
        let (mut width, mut speed) = (self.widths, self.speeds);
        let tail = comment.rsplit('"').next().unwrap_or("");
        for word in remote
            .split_ascii_whitespace()
            .chain(tail.split_ascii_whitespace())
        {
            match word.split_once('=') {
                Some((key, value)) if key.ends_with('w') => width = widths(value)?,
                // 0 means QDR, as in ibsim: nothing but extended speeds is said.
                Some((key, value)) if key.ends_with('s') => {
                    speed.0 = Some(mask("an enabled speed", value, 0, 7)?)
                        .filter(|s| *s != 0)
                        .unwrap_or(4);
                }
                Some((key, value)) if key.ends_with('e') => {
                    speed.1 = mask("an enabled extended speed", value, 0, 15)?;
                }
                _ => {}
            }
        }
        port.widths = width;
        port.speeds = Speeds::from_masks(speed.0, speed.1).unwrap_or(Speeds::SDR);
        let label = label(rest);
        if let Some(label) = &label {
            // As in ibsim, the rate's name counts for more than the masks.
            port.widths = label.widths.unwrap_or(port.widths);
            port.speeds = label.speeds.unwrap_or(port.speeds);
        }
        let odd = label
            .filter(|l| l.widths.is_none() || l.speeds.is_none())
            .map(|l| short(l.text));
        if !node.is_switch() {
            let own = comment.split('"').next().unwrap_or(comment);
            (port.lid, port.lmc) = (lid(own), lmc(own));
        }
        Ok((PortLine { port, target }, odd))
    }

    /// Keeps what a port line says, once.
    fn keep(
        &mut self,
        near: Peer,
        said: Port,
        target: Option<Target>,
        place: Place,
    ) -> Result<(), FileError> {
        let cable = self.cables.len();
        if let Some(current) = &mut self.current {
            match current.seen.entry(near.port) {
                Entry::Vacant(free) => {
                    free.insert((place.1, cable));
                }
                Entry::Occupied(old) => {
                    let (first, old) = *old.get();
                    let same = self
                        .cables
                        .get(old)
                        .is_some_and(|c| c.near == near && Some(&c.target) == target.as_ref());
                    // An alias and a cable in one port are two lines for one port by design.
                    let alias =
                        target.is_none() || self.cables.get(old).is_none_or(|c| c.near != near);
                    if same {
                        self.warn(place, || {
                            format!("port {} again, as in line {first}", near.port)
                        });
                        return Ok(());
                    }
                    if !alias {
                        let id = self
                            .parsed
                            .topology
                            .node(near.node)
                            .map_or_else(String::new, |n| n.id.clone());
                        return Err(self.error(
                            place,
                            FileFault::PortTwice {
                                id,
                                port: near.port,
                                first,
                            },
                        ));
                    }
                }
            }
        }
        if let Some(port) = self
            .parsed
            .topology
            .node_mut(near.node)
            .and_then(|n| n.port_mut(near.port))
        {
            *port = said;
        }
        if let Some(target) = target {
            self.cables.push(Cable {
                near,
                target,
                place,
            });
        }
        Ok(())
    }

    fn full_id(&self, id: &str) -> String {
        if self.prefix.is_empty() {
            id.to_owned()
        } else {
            format!("{}.{id}", self.prefix)
        }
    }

    /// Plugs the cables, once all nodes are known.
    fn connect(&mut self) -> Result<(), FileError> {
        let cables = std::mem::take(&mut self.cables);
        // Where each port's own line says that its cable leads.
        let mut ends: BTreeMap<Peer, (Peer, Place)> = BTreeMap::new();
        let mut by_alias = BTreeSet::new();
        for cable in &cables {
            if let Some(far) = self.resolve(cable)? {
                ends.insert(cable.near, (far, cable.place));
                if matches!(cable.target, Target::Alias(_)) {
                    by_alias.insert(cable.near);
                }
            }
        }
        for (near, (far, place)) in &ends {
            match ends.get(far) {
                Some((back, _)) if back == near => {}
                Some((back, line)) => {
                    let name = |end: &Peer| self.parsed.topology.name(*end);
                    let fault = FileFault::Mismatch {
                        near: name(near),
                        far: name(far),
                        back: name(back),
                        line: line.1,
                    };
                    return Err(self.error(*place, fault));
                }
                None => self.complete(*near, *far, *place, by_alias.contains(near))?,
            }
            // Each cable comes twice, once from each end.
            if far < near && ends.contains_key(far) {
                continue;
            }
            self.parsed
                .topology
                .connect(*near, *far)
                .map_err(|fault| self.error(*place, fault))?;
        }
        Ok(())
    }

    /// A cable that only one end names: the other end gets the same rate.
    fn complete(
        &mut self,
        near: Peer,
        far: Peer,
        place: Place,
        alias: bool,
    ) -> Result<(), FileError> {
        if !alias {
            let near = self.parsed.topology.name(near);
            let far = self.parsed.topology.name(far);
            if self.options.strict {
                return Err(self.error(place, FileFault::OneSided { near, far }));
            }
            self.warn(place, || {
                format!("{near} leads to {far}, which does not say so; plugged all the same")
            });
        }
        let rate = self
            .parsed
            .topology
            .node(near.node)
            .and_then(|n| n.port(near.port))
            .map(|p| (p.widths, p.speeds));
        let known = self
            .parsed
            .topology
            .node(far.node)
            .and_then(|n| n.port(far.port))
            .is_some();
        if let (Some((widths, speeds)), false) = (rate, known) {
            self.parsed
                .topology
                .set_rate(far, widths, speeds)
                .map_err(|fault| self.error(place, fault))?;
        }
        Ok(())
    }

    /// The far end of a cable; `None` where it is left out.
    fn resolve(&mut self, cable: &Cable) -> Result<Option<Peer>, FileError> {
        let (id, port) = match &cable.target {
            Target::Alias(alias) => match self.aliases.get(alias) {
                Some(peer) => return Ok(Some(*peer)),
                None => (alias, 1),
            },
            Target::Node(id, port) => (id, *port),
            Target::Own(_) => return Ok(None),
        };
        let Some(node) = self.parsed.topology.find_id(id) else {
            let (near, id) = (self.parsed.topology.name(cable.near), short(id));
            if self.options.strict {
                return Err(self.error(cable.place, FileFault::UnknownPeer { near, id }));
            }
            self.warn(cable.place, || {
                format!("{near} leads to {id:?}, which the file does not have; left unplugged")
            });
            return Ok(None);
        };
        let count = self.parsed.topology.node(node).map_or(0, |n| n.port_count);
        match u8::try_from(port).ok().filter(|p| (1..=count).contains(p)) {
            Some(port) => Ok(Some(Peer { node, port })),
            None => {
                let near = self.parsed.topology.name(cable.near);
                let port = u8::try_from(port).unwrap_or(u8::MAX);
                Err(self.error(
                    cable.place,
                    FileFault::PeerPortBeyond {
                        near,
                        id: id.clone(),
                        port,
                        count,
                    },
                ))
            }
        }
    }
}

impl From<TopologyError> for FileFault {
    fn from(error: TopologyError) -> Self {
        Self::Topology(error)
    }
}

/// The description in a node's line and what follows it. A description may hold quotes; some old
/// dumps have it without any.
fn description(rest: &str) -> (&str, &str) {
    let Some((_, comment)) = rest.split_once('#') else {
        return ("", rest);
    };
    let comment = comment.trim_start();
    if let Some(open) = comment.strip_prefix('"') {
        return open.rsplit_once('"').unwrap_or((open, ""));
    }
    let words = [" enhanced port ", " base port ", " lid ", " lmc "];
    let end = words
        .into_iter()
        .find_map(|w| comment.find(w))
        .unwrap_or(comment.len());
    comment.split_at_checked(end).unwrap_or((comment, ""))
}

fn lid(text: &str) -> u16 {
    after(text, "lid")
        .and_then(|n| u16::try_from(n).ok())
        .unwrap_or(0)
}

fn lmc(text: &str) -> u8 {
    after(text, "lmc")
        .and_then(|n| u8::try_from(n).ok())
        .filter(|n| *n <= 7)
        .unwrap_or(0)
}

fn mask(what: &'static str, value: &str, min: u64, max: u64) -> Result<u8, FileFault> {
    let (mask, _) = ranged(what, value, min, max)?;
    Ok(u8::try_from(mask).unwrap_or(0))
}

fn widths(value: &str) -> Result<Widths, FileFault> {
    let mask = mask("an enabled width", value, 1, 31)?;
    Widths::from_mask(mask).ok_or_else(|| syntax("an enabled width", value))
}
