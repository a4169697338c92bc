//! Net files and dumps: the topologies that are written down.
//!
//! [`read`] takes what ibsim takes (its own net files and any `ibnetdiscover` dump, of every age)
//! and, beyond that, `ibnetdiscover -p` reports. [`write`](write()) makes a net file that ibsim loads.
//!
//! The grammar of a net file, after ibsim's `sim_net.c`; lines that fit nothing are passed over:
//!
//! ```text
//! node   := ("Switch" | "Ca" | "Hca" | "Rt") ports "id" [# "description"] ["base"|"enhanced" port 0] [lid n] [lmc n]
//! port   := [p] [(guid)] "peer id" [[peer port]] [(guid)] [w=mask] [s=mask] [e=mask]
//!           [# [lid n lmc n] "description" lid n 4xEDR]
//! alias  := @[p] "alias", and then "@alias" as a peer
//! before a node: vendid= devid= sysimgguid= switchguid= caguid= rtguid= (and guid+offset)
//! defaults:      width= speed= extspeed= module="prefix" include "file"
//! ```
//!
//! Where this reader departs from ibsim: a cable that only one end names is plugged, and one to a
//! node that the file lacks is left out, both with a warning ([`Options::strict`] refuses them); a
//! second cable in a port is an error and not silently the one that counts; a node need not be
//! followed by an empty line; console commands (`do`) are not carried out; a module's prefix is
//! joined to the id with a full stop.

mod error;
mod line;
mod net;
mod report;
mod write;

pub use error::{FileError, FileFault, Warning};
pub use write::write;

use super::Topology;

/// Warnings that are kept; more are only counted.
const MAX_WARNINGS: usize = 100;

/// Files that include each other may be this deep, as in ibsim.
const MAX_INCLUDE: usize = 9;

/// How a file is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Refuse what ibsim refuses: cables that only one end names, or whose other end is missing.
    pub strict: bool,
}

impl Options {
    /// Reads as tolerantly as makes sense.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Refuses incomplete cables.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }
}

/// What kind of file it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A net file, or a dump of `ibnetdiscover`.
    Net,
    /// A report of `ibnetdiscover -p`.
    PortReport,
}

/// What a file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The nodes and cables.
    pub topology: Topology,
    /// What was passed over or completed, the first hundred.
    pub warnings: Vec<Warning>,
    /// How many warnings there were.
    pub warning_count: usize,
    /// What kind of file it was.
    pub format: Format,
}

impl Parsed {
    fn new(format: Format) -> Self {
        Self {
            topology: Topology::new(),
            warnings: Vec::new(),
            warning_count: 0,
            format,
        }
    }

    fn warn(&mut self, file: &str, line: usize, text: impl FnOnce() -> String) {
        self.warning_count += 1;
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Warning {
                file: file.to_owned(),
                line,
                text: text(),
            });
        }
    }
}

/// Reads a net file, an `ibnetdiscover` dump or an `ibnetdiscover -p` report.
///
/// `name` is the file's name for messages. Bytes that are not UTF-8 (NodeDescriptions may have
/// any) are replaced. An `include` is an error here: use [`read_with`].
///
/// ```
/// use ib_sim::topo::file::read;
///
/// let net = b"Switch 8 \"sw\"\n[1] \"host\"[1]\n\nHca 1 \"host\"\n[1] \"sw\"[1]\n";
/// let parsed = read("two.net", net)?;
/// assert_eq!(parsed.topology.links().count(), 1);
///
/// let error = read("bad.net", b"Switch 8 \"sw\"\n[9] \"host\"[1]\n").unwrap_err();
/// assert_eq!(error.to_string(), "bad.net:2: port 9 of \"sw\", which has ports 1 to 8");
/// # Ok::<(), ib_sim::topo::file::FileError>(())
/// ```
///
/// # Errors
/// Where the text contradicts itself; the error names file, line and what is wrong.
pub fn read(name: &str, text: &[u8]) -> Result<Parsed, FileError> {
    read_with(name, text, &Options::new(), &mut |_| None)
}

/// [`read`] with options, and with a function that gives the text of an included file.
///
/// # Errors
/// As [`read`]; and where `include` gives `None`, or files are included deeper than nine levels.
pub fn read_with(
    name: &str,
    text: &[u8],
    options: &Options,
    include: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Parsed, FileError> {
    if report::is_report(text) {
        report::read(name, text, options)
    } else {
        net::read(name, text, options, include)
    }
}
