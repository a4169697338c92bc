//! What a manager tells, in words.

use crate::core::sm::{Event, Reason};

/// A name for machines, and the same in words.
pub(crate) fn words(event: &Event) -> (&'static str, String) {
    match event {
        Event::State(state) => ("state", format!("this manager is {state}")),
        Event::Sweep(Reason::Full) => ("sweep", "looking at everything".to_owned()),
        Event::Sweep(Reason::Change { switches }) => (
            "sweep",
            format!("looking at what changed: nodes {switches}"),
        ),
        Event::Found {
            nodes,
            switches,
            ports,
        } => (
            "found",
            format!("nodes {nodes}, switches {switches}, ports {ports}"),
        ),
        Event::Warning(warning) => ("warning", warning.to_string()),
        Event::DuplicateGuid { guid } => (
            "duplicate",
            format!("port GUID {guid} is there twice; the second port gets no LID"),
        ),
        Event::NoLid { guid } => ("no-lid", format!("no LID is left for port {guid}")),
        Event::Lids { ports } => ("lids", format!("LIDs of {ports} ports are remembered")),
        Event::Routed {
            engine,
            shape,
            vls,
            notes,
            blocks,
            rounds,
        } => {
            let mut text = format!("by {engine}");
            if !shape.is_empty() {
                text += &format!(" as {shape}");
            }
            text += &format!(" on {vls} VLs; blocks to write {blocks}, in rounds {rounds}");
            for note in notes {
                text += &format!("; {note}");
            }
            ("routed", text)
        }
        Event::Up(work) => (
            "up",
            format!(
                "SUBNET UP: nodes {}, LIDs to {}; SMPs {}, ports set {}, blocks read {}, written {} ({} twice), \
                 active {}; looking {:.6} s, all {:.6} s",
                work.nodes,
                work.top_lid,
                work.sent,
                work.ports,
                work.read,
                work.blocks,
                work.scrubbed,
                work.activated,
                work.looking.as_secs_f64(),
                work.total.as_secs_f64()
            ),
        ),
        Event::Forgot { switch } => (
            "forgot",
            format!("switch {switch} holds other tables than were written"),
        ),
        Event::Failed { node, what, status } => match status {
            Some(status) => ("failed", format!("{node}: {what}: status {status:#06x}")),
            None => ("failed", format!("{node}: {what}: no answer")),
        },
        Event::Trap {
            trap,
            lid,
            node,
            port,
        } => {
            let node = node.map_or_else(|| "nobody known".to_owned(), |it| it.to_string());
            (
                "trap",
                format!("{trap} from LID {lid}, {node}, port {port}"),
            )
        }
        Event::Babbling { lid, trap, port } => {
            ("babbling", format!("LID {lid} port {port} repeats: {trap}"))
        }
        Event::Unhealthy { switch, port } => (
            "unhealthy",
            format!("{switch} port {port} has too many errors; routing avoids it"),
        ),
        Event::Other {
            guid,
            priority,
            state,
        } => (
            "other",
            format!("manager at {guid}, priority {priority}, {state}"),
        ),
        Event::MasterLost { failures } => (
            "master-lost",
            format!("the master is gone: failures {failures}"),
        ),
        Event::HandedOver { to } => ("handed-over", format!("to the manager at {to}")),
        Event::LocalSilent => ("local-silent", "the local port does not answer".to_owned()),
    }
}
