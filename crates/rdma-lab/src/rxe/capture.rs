//! What Wireshark's dissectors say of the packets.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::{peer, process};

/// Wireshark's severities, from `packet-epan.h`: what is at least an error.
const ERROR: u32 = 0x0080_0000;

/// Dissectors that guess by a payload's bytes whether it is theirs (`tshark -G heuristic-decodes`, table `infiniband.payload`). This lab's payloads
/// are none of these protocols: RPC over RDMA takes them for its own, and EoIB stumbles over a datagram without any.
const GUESSES: &[&str] = &[
    "rpcordma",
    "infiniband.eoib",
    "infiniband_sdp",
    "fcoib",
    "iser",
    "lnet",
    "nvme-rdma",
    "smb_direct",
    "smc",
];

/// What was captured.
#[derive(Debug, Clone, Default)]
pub struct Capture {
    /// How many packets.
    pub packets: usize,
    /// How many of them have a base transport header.
    pub roce: usize,
    /// How many of each opcode, by the number in the header.
    pub opcodes: BTreeMap<u8, usize>,
    /// How many are cut off or don't follow their format.
    pub malformed: usize,
    /// What the dissectors call an error, with the number of the first such packet, and how often.
    pub errors: BTreeMap<String, (u64, usize)>,
}

impl Capture {
    /// Whether every packet is of RoCEv2 and as it should be.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.packets > 0
            && self.roce == self.packets
            && self.malformed == 0
            && self.errors.is_empty()
    }

    fn add(&mut self, line: &str) {
        let fields: Vec<&str> = line.split('\t').collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or("");
        let number = field(0).parse().unwrap_or(0);
        self.packets += 1;
        if let Some(opcode) = field(1)
            .split(',')
            .next()
            .and_then(|text| text.parse().ok())
        {
            self.roce += 1;
            *self.opcodes.entry(opcode).or_default() += 1;
        }
        if !field(2).is_empty() {
            self.malformed += 1;
        }
        let severities = field(3).split(',').filter_map(|text| {
            text.strip_prefix("0x").map_or_else(
                || text.parse::<u32>().ok(),
                |hex| u32::from_str_radix(hex, 16).ok(),
            )
        });
        if severities.max().is_some_and(|severity| severity >= ERROR) {
            self.errors
                .entry(field(4).to_owned())
                .or_insert((number, 0))
                .1 += 1;
        }
    }
}

impl fmt::Display for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: usize = self.errors.values().map(|(_, count)| count).sum();
        write!(
            f,
            "{} packets on the wire, {} RoCEv2 of {} opcodes, {} malformed, {errors} with an error of the dissector",
            self.packets,
            self.roce,
            self.opcodes.len(),
            self.malformed
        )?;
        for (text, (number, count)) in &self.errors {
            write!(f, "\n  {count} times, first in packet {number}: {text}")?;
        }
        Ok(())
    }
}

/// Dissects a file of captured packets with tshark.
///
/// # Errors
/// A missing tshark, and a file that it does not read.
pub fn dissect(file: &Path) -> Result<Capture> {
    let mut command = Command::new(peer::need("tshark")?);
    command.arg("-r").arg(file);
    for guess in GUESSES {
        command.args(["--disable-protocol", guess]);
    }
    command.args([
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-e",
        "infiniband.bth.opcode",
        "-e",
        "_ws.malformed",
        "-e",
        "_ws.expert.severity",
        "-e",
        "_ws.expert.message",
    ]);
    let output = process::run(&command, Duration::from_secs(120))?.success()?;
    let mut capture = Capture::default();
    let text = output.stdout_text();
    for line in text.lines() {
        capture.add(line);
    }
    ensure!(
        capture.packets > 0,
        "tshark saw no packet: {}",
        output.stderr_text()
    );
    Ok(capture)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tshark_prints_is_counted() {
        let mut capture = Capture::default();
        capture.add("1\t4\t\t\t");
        capture.add("2\t17\t\t2097152\tA note");
        assert!(capture.is_clean());
        assert_eq!(capture.opcodes.len(), 2);
        capture.add("3\t4\t\t8388608,4194304\tBad length,A warning");
        assert!(!capture.is_clean());
        assert_eq!(capture.errors["Bad length,A warning"], (3, 1));
        let mut other = Capture::default();
        other.add("1\t\t\t\t");
        assert!(!other.is_clean(), "a packet that is not RoCEv2");
        let mut bad = Capture::default();
        bad.add("1\t4\tInfiniband\t0x00800000\tMalformed Packet");
        assert!(!bad.is_clean());
        assert!(bad.to_string().contains("first in packet 1"));
    }
}
