//! The reader of `ibnetdiscover -p` reports: one port a line.
//!
//! ```text
//! CA   134  1 0x7cfe9003003b4bde 4x EDR - SW  1719 10 0x7cfe9003009ce5b0 ( 'o0001 HCA-1' - 'ib-i1l1s01' )
//! SW  2052 37 0x506b4b03005c2740 4x ???                                    'ib-i4l1s01'
//! ```
//!
//! The GUIDs are those of ports, so that the ports of one adapter cannot be told from adapters of
//! one port each: every CA port becomes a node. A switch has as many ports as lines.

use std::collections::BTreeMap;

use super::line::{number, ranged, syntax};
use super::{FileError, FileFault, Format, Options, Parsed};
use crate::topo::{Kind, Node, Peer, Speeds, Widths};

/// Does the first line that says anything look like a report's?
pub(super) fn is_report(text: &[u8]) -> bool {
    let first = text
        .split(|b| *b == b'\n')
        .find(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"));
    let Some(first) = first
        .and_then(|line| std::str::from_utf8(line.get(..line.len().min(40)).unwrap_or(line)).ok())
    else {
        return false;
    };
    let mut words = first.split_ascii_whitespace();
    kind(words.next().unwrap_or("")).is_some()
        && words.next().is_some_and(|w| w.parse::<u16>().is_ok())
        && words.next().is_some_and(|w| w.parse::<u8>().is_ok())
        && words.next().is_some_and(|w| w.starts_with("0x"))
}

fn kind(word: &str) -> Option<Kind> {
    match word {
        "CA" => Some(Kind::Ca),
        "SW" => Some(Kind::Switch),
        "RT" => Some(Kind::Router),
        _ => None,
    }
}

/// One end of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    kind: Kind,
    lid: u16,
    port: u8,
    guid: u64,
}

/// What is known of a node so far.
#[derive(Debug)]
struct Known {
    kind: Kind,
    name: String,
    lid: u16,
    ports: u8,
}

/// A line, read.
struct Line {
    near: End,
    far: Option<End>,
    rate: (Option<Widths>, Option<Speeds>),
    number: usize,
}

pub(super) fn read(name: &str, text: &[u8], options: &Options) -> Result<Parsed, FileError> {
    let mut known: Vec<(u64, Known)> = Vec::new();
    let mut by_guid: BTreeMap<u64, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for (line_number, line) in (1..).zip(text.split(|b| *b == b'\n')) {
        let line = String::from_utf8_lossy(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fail = |fault| FileError {
            file: name.to_owned(),
            line: line_number,
            fault,
        };
        let (line, names) = parse(&line, line_number).map_err(fail)?;
        for (end, name) in [Some(&line.near), line.far.as_ref()].into_iter().zip(names) {
            let Some(end) = end else { continue };
            let at = *by_guid.entry(end.guid).or_insert_with(|| {
                known.push((
                    end.guid,
                    Known {
                        kind: end.kind,
                        name: String::new(),
                        lid: end.lid,
                        ports: 0,
                    },
                ));
                known.len() - 1
            });
            if let Some((_, node)) = known.get_mut(at) {
                node.ports = node.ports.max(end.port);
                if node.name.is_empty() {
                    node.name = name;
                }
            }
        }
        lines.push(line);
    }

    let mut parsed = Parsed::new(Format::PortReport);
    let fail = |line, fault: FileFault| FileError {
        file: name.to_owned(),
        line,
        fault,
    };
    for (guid, known) in known {
        let letter = match known.kind {
            Kind::Ca => 'H',
            Kind::Switch => 'S',
            Kind::Router => 'R',
        };
        let mut node = Node::new(
            known.kind,
            format!("{letter}-{guid:016x}"),
            guid,
            known.ports,
        );
        if !known.name.is_empty() {
            node.description = known.name;
        }
        // The only port whose GUID is known is the one that was seen.
        let number = if known.kind == Kind::Switch {
            0
        } else {
            known.ports
        };
        if let Some(port) = node.port_mut(number) {
            port.lid = known.lid;
            port.guid = (known.kind != Kind::Switch).then_some(guid);
        }
        parsed
            .topology
            .add(node)
            .map_err(|e| fail(1, FileFault::Topology(e)))?;
    }
    cables(name, &lines, options, &mut parsed)?;
    Ok(parsed)
}

/// Plugs the cables, and sees to it that both ends name each other.
fn cables(
    name: &str,
    lines: &[Line],
    options: &Options,
    parsed: &mut Parsed,
) -> Result<(), FileError> {
    let peer = |parsed: &Parsed, end: &End| {
        parsed.topology.find_guid(end.guid).map(|node| Peer {
            node,
            port: end.port,
        })
    };
    let mut said: BTreeMap<Peer, usize> = BTreeMap::new();
    for line in lines {
        if let Some(near) = peer(parsed, &line.near) {
            said.insert(near, line.number);
        }
        for end in [Some(&line.near), line.far.as_ref()].into_iter().flatten() {
            let Some(at) = peer(parsed, end) else {
                continue;
            };
            if let Some(port) = parsed
                .topology
                .node_mut(at.node)
                .and_then(|n| n.port_mut(at.port))
            {
                port.widths = line.rate.0.unwrap_or(port.widths);
                port.speeds = line.rate.1.unwrap_or(port.speeds);
            }
        }
    }
    for line in lines {
        let Some(far) = &line.far else { continue };
        let (Some(near), Some(far)) = (peer(parsed, &line.near), peer(parsed, far)) else {
            continue;
        };
        let names = (parsed.topology.name(near), parsed.topology.name(far));
        let fail = |fault| FileError {
            file: name.to_owned(),
            line: line.number,
            fault,
        };
        if !said.contains_key(&far) {
            if options.strict {
                return Err(fail(FileFault::OneSided {
                    near: names.0,
                    far: names.1,
                }));
            }
            parsed.warn(name, line.number, || {
                format!("{} leads to {}, which has no line", names.0, names.1)
            });
        }
        if let Err(error) = parsed.topology.connect(near, far) {
            // A report taken while cables move may name one port twice.
            if options.strict {
                return Err(fail(FileFault::Topology(error)));
            }
            parsed.warn(name, line.number, || {
                format!("{error}; the second is left out")
            });
        }
    }
    Ok(())
}

/// Reads a line and the names of its two ends.
fn parse(text: &str, number: usize) -> Result<(Line, [String; 2]), FileFault> {
    let (near, rest) = end(text)?;
    let rest = rest.trim_start();
    let (width, rest) = word(rest);
    let (speed, rest) = word(rest);
    if !width.ends_with('x') {
        return Err(syntax("a width such as 4x", width));
    }
    let rate = (Widths::up_to(width), Speeds::up_to(speed));
    let rest = rest.trim();
    let Some(rest) = rest.strip_prefix("- ") else {
        let name = rest.trim_matches('\'').to_owned();
        return Ok((
            Line {
                near,
                far: None,
                rate,
                number,
            },
            [name, String::new()],
        ));
    };
    let (far, rest) = end(rest)?;
    let names = rest
        .trim()
        .strip_prefix('(')
        .and_then(|r| r.strip_suffix(')'))
        .map_or("", str::trim);
    let names = names
        .strip_prefix('\'')
        .and_then(|r| r.strip_suffix('\''))
        .unwrap_or("");
    let (a, b) = names.split_once("' - '").unwrap_or((names, ""));
    Ok((
        Line {
            near,
            far: Some(far),
            rate,
            number,
        },
        [a.to_owned(), b.to_owned()],
    ))
}

/// `CA   134  1 0x7cfe9003003b4bde` and what follows.
fn end(text: &str) -> Result<(End, &str), FileFault> {
    let (kind_word, rest) = word(text);
    let kind = kind(kind_word).ok_or_else(|| syntax("CA, SW or RT", text))?;
    let (lid, rest) = ranged("a LID", rest, 0, 0xffff)?;
    let (port, rest) = ranged("a port number", rest, 1, 254)?;
    let (guid_word, rest) = word(rest);
    let (guid, _) = number_hex(guid_word)
        .ok_or_else(|| syntax("a GUID such as 0x7cfe9003003b4bde", guid_word))?;
    let end = End {
        kind,
        lid: u16::try_from(lid).unwrap_or(0),
        port: u8::try_from(port).unwrap_or(0),
        guid,
    };
    Ok((end, rest))
}

fn number_hex(text: &str) -> Option<(u64, &str)> {
    text.starts_with("0x").then(|| number(text))?
}

/// The next word and what follows.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let end = text
        .find(|c: char| c.is_ascii_whitespace())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn a_report_is_told_from_a_dump() {
        assert!(is_report(
            b"\nSW    24 1 0x946dae0300618c82 4x SDR   'spine'\n"
        ));
        assert!(!is_report(b"Ca 1 \"H-1\"\n"));
        assert!(!is_report(b""));
    }

    #[test]
    fn cables_and_names() {
        let text = b"CA   134  1 0x10 4x EDR - SW  19 10 0x20 ( 'o0001 HCA-1' - 'it's a switch' )\nSW  19 11 0x20 4x ???    'x'\n";
        let parsed = read("r", text).unwrap();
        assert_eq!(parsed.format, Format::PortReport);
        let sw = parsed
            .topology
            .node(parsed.topology.find_guid(0x20).unwrap())
            .unwrap();
        assert_eq!(
            (
                sw.description.as_str(),
                sw.port_count,
                sw.port(0).unwrap().lid
            ),
            ("it's a switch", 11, 19)
        );
        let rate = parsed
            .topology
            .active_rate(Peer { node: 0, port: 1 })
            .unwrap();
        assert_eq!(
            (rate.0.to_string(), rate.1.to_string()),
            ("4x".to_owned(), "EDR".to_owned())
        );
        assert_eq!(parsed.warning_count, 1);
        let error = read("r", b"CA 1 1 0x10 4x EDR - SW 2 999 0x20 ( 'a' - 'b' )").unwrap_err();
        assert_eq!(
            error.to_string(),
            "r:1: a port number \"999\" is not from 1 to 254"
        );
    }
}
