//! The words that name a generated topology, as `--sim` takes them.

use std::fmt;
use std::str::FromStr;

use super::plant::Plant;
use super::{
    BackToBack, Dragonfly, FatTree, Random, Ring, SingleSwitch, Speeds, Topology, Torus, Widths,
};
use crate::error::TopologyError;

/// A generated topology, described in words.
///
/// The grammar: `shape[:argument,…]`, where an argument is `key=value` or, for some shapes, one
/// word in the first place.
///
/// | spec | fabric |
/// |---|---|
/// | `fat-tree:N` | N = 108, 648, 1728, 5184 or 11664 hosts: the trees that OpenSM's figures are known for |
/// | `fat-tree:k=36,levels=2[,hosts=18][,leaves=36][,spines=18]` | two levels of k-port switches; cables that are more than the spines become parallel ones |
/// | `fat-tree:k=36,levels=3[,hosts=18][,pods=36][,cores=18]` | three levels; `cores` in each of the k/2 groups |
/// | `torus:6x6x6[,hosts=1][,links=1][,ports=36]` | one to five dimensions; `links` parallel cables |
/// | `dragonfly:p=4[,a=8][,h=4][,groups=33][,ports=36]` | p hosts, a switches a group, h global cables; the balanced one by default |
/// | `random:switches=20[,hosts=20][,degree=4][,ports=36][,seed=1]` | connected, the same for the same seed |
/// | `ring:switches=8[,hosts=1][,ports=36]` | switches in a circle |
/// | `switch[:hosts=4][,ports=36]` | one switch |
/// | `back-to-back` | two hosts and a cable |
///
/// Every shape also takes `speed=SDR…XDR` (default `EDR`) and `width=1x…12x` (default `4x`).
///
/// ```
/// use ib_sim::topo::Spec;
///
/// let spec: Spec = "torus:4x4,hosts=3,speed=HDR".parse()?;
/// assert_eq!(spec.build()?.nodes().len(), 64);
/// let error = "torus:4x4,host=3".parse::<Spec>().unwrap_err();
/// assert_eq!(error.to_string(), "topology \"torus:4x4,host=3\": unknown argument \"host\" for torus, which takes hosts, links, ports, speed, width");
/// # Ok::<(), ib_sim::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The shape.
    pub shape: Shape,
    /// Enabled widths of every port.
    pub widths: Widths,
    /// Enabled speeds of every port.
    pub speeds: Speeds,
}

/// The shapes there are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shape {
    /// A fat tree.
    FatTree(FatTree),
    /// A torus.
    Torus(Torus),
    /// A dragonfly.
    Dragonfly(Dragonfly),
    /// Random cables.
    Random(Random),
    /// A ring.
    Ring(Ring),
    /// One switch.
    SingleSwitch(SingleSwitch),
    /// Two hosts.
    BackToBack(BackToBack),
}

/// The shapes' names and the keys each takes.
const SHAPES: [(&str, &[&str]); 7] = [
    (
        "fat-tree",
        &["k", "levels", "hosts", "leaves", "spines", "pods", "cores"],
    ),
    ("torus", &["hosts", "links", "ports"]),
    ("dragonfly", &["p", "a", "h", "groups", "ports"]),
    ("random", &["switches", "hosts", "degree", "ports", "seed"]),
    ("ring", &["switches", "hosts", "ports"]),
    ("switch", &["hosts", "ports"]),
    ("back-to-back", &[]),
];

impl Spec {
    /// A shape with EDR links of four lanes.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        Self {
            shape,
            widths: Widths::up_to("4x").unwrap_or(Widths::X4),
            speeds: Speeds::up_to("EDR").unwrap_or(Speeds::EDR),
        }
    }

    /// Does this text name a shape, rather than, say, a file?
    #[must_use]
    pub fn is_named(text: &str) -> bool {
        let name = text.split(':').next().unwrap_or(text);
        SHAPES.iter().any(|(shape, _)| *shape == name)
    }

    /// Makes the fabric: nodes `host-0` …, then the switches.
    ///
    /// # Errors
    /// Where the numbers give more nodes or ports than there can be.
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let mut plant = Plant::new(self.widths, self.speeds);
        match &self.shape {
            Shape::FatTree(shape) => shape.build(&mut plant)?,
            Shape::Torus(shape) => shape.build(&mut plant)?,
            Shape::Dragonfly(shape) => shape.build(&mut plant)?,
            Shape::Random(shape) => shape.build(&mut plant)?,
            Shape::Ring(shape) => shape.build(&mut plant)?,
            Shape::SingleSwitch(shape) => shape.build(&mut plant)?,
            Shape::BackToBack(_) => BackToBack::build(&mut plant)?,
        }
        Ok(plant.finish())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut args = Args::split(text)?;
        let shape = match args.shape {
            "fat-tree" => Shape::FatTree(FatTree::parse(&mut args)?),
            "torus" => Shape::Torus(Torus::parse(&mut args)?),
            "dragonfly" => Shape::Dragonfly(Dragonfly::parse(&mut args)?),
            "random" => Shape::Random(Random::parse(&mut args)?),
            "ring" => Shape::Ring(Ring::parse(&mut args)?),
            "switch" => Shape::SingleSwitch(SingleSwitch::parse(&mut args)?),
            _ => Shape::BackToBack(BackToBack),
        };
        let mut spec = Self::new(shape);
        if let Some(label) = args.take("speed") {
            spec.speeds = Speeds::up_to(label).ok_or_else(|| {
                args.bad(
                    "speed",
                    label,
                    "SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR",
                )
            })?;
        }
        if let Some(label) = args.take("width") {
            spec.widths = Widths::up_to(label)
                .ok_or_else(|| args.bad("width", label, "1x, 2x, 4x, 8x or 12x"))?;
        }
        args.finish()?;
        Ok(spec)
    }
}

/// A topology's words are not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("topology {spec:?}: {fault}")]
pub struct SpecError {
    /// The whole text.
    pub spec: String,
    /// What is wrong with it.
    pub fault: SpecFault,
}

/// What is wrong with a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecFault {
    /// No such shape.
    Shape {
        /// The word in its place.
        word: String,
    },
    /// A key that the shape does not take.
    Key {
        /// The key, or the word in a place where none is expected.
        key: String,
        /// The shape.
        shape: &'static str,
        /// The keys it takes.
        known: &'static [&'static str],
    },
    /// A key twice.
    Twice {
        /// The key.
        key: String,
    },
    /// A value that does not fit.
    Value {
        /// What it is the value of.
        key: String,
        /// The value.
        value: String,
        /// What is expected.
        want: String,
    },
    /// An argument that must be there.
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Values that exclude each other.
    Conflict {
        /// How.
        why: String,
    },
}

impl fmt::Display for SpecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape { word } => {
                write!(f, "unknown shape {word:?}; there are ")?;
                for (i, (shape, _)) in SHAPES.iter().enumerate() {
                    write!(f, "{}{shape}", if i == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Self::Key { key, shape, known } => {
                write!(f, "unknown argument {key:?} for {shape}, which takes ")?;
                known.iter().try_for_each(|k| write!(f, "{k}, "))?;
                f.write_str("speed, width")
            }
            Self::Twice { key } => write!(f, "{key:?} is given twice"),
            Self::Value { key, value, want } => write!(f, "{key} is {value:?}, not {want}"),
            Self::Missing { key } => write!(f, "{key} is missing"),
            Self::Conflict { why } => f.write_str(why),
        }
    }
}

/// The arguments of a spec, taken one by one; what is left at the end is an error.
#[derive(Debug)]
pub(super) struct Args<'a> {
    spec: &'a str,
    shape: &'static str,
    known: &'static [&'static str],
    left: Vec<(&'a str, &'a str)>,
    word: Option<&'a str>,
}

impl<'a> Args<'a> {
    fn split(spec: &'a str) -> Result<Self, SpecError> {
        let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
        let fail = |fault| {
            Err(SpecError {
                spec: spec.to_owned(),
                fault,
            })
        };
        let Some((shape, known)) = SHAPES.into_iter().find(|(shape, _)| *shape == name) else {
            return fail(SpecFault::Shape {
                word: name.to_owned(),
            });
        };
        let mut args = Self {
            spec,
            shape,
            known,
            left: Vec::new(),
            word: None,
        };
        for (i, part) in rest.split(',').filter(|part| !part.is_empty()).enumerate() {
            match part.split_once('=') {
                None if i == 0 && matches!(shape, "fat-tree" | "torus") => args.word = Some(part),
                Some((key, value)) if known.contains(&key) || key == "speed" || key == "width" => {
                    if args.left.iter().any(|(k, _)| *k == key) {
                        return fail(SpecFault::Twice {
                            key: key.to_owned(),
                        });
                    }
                    args.left.push((key, value));
                }
                other => {
                    let key = other.map_or(part, |(key, _)| key).to_owned();
                    return fail(SpecFault::Key { key, shape, known });
                }
            }
        }
        Ok(args)
    }

    fn fail(&self, fault: SpecFault) -> SpecError {
        SpecError {
            spec: self.spec.to_owned(),
            fault,
        }
    }

    pub(super) fn bad(&self, key: &str, value: &str, want: impl Into<String>) -> SpecError {
        self.fail(SpecFault::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            want: want.into(),
        })
    }

    pub(super) fn missing(&self, key: &'static str) -> SpecError {
        self.fail(SpecFault::Missing { key })
    }

    pub(super) fn conflict(&self, why: String) -> SpecError {
        self.fail(SpecFault::Conflict { why })
    }

    /// The word before the keys.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        self.word.take()
    }

    fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.left.iter().position(|(k, _)| *k == key)?;
        Some(self.left.remove(at).1)
    }

    pub(super) fn number(&mut self, key: &str, min: u8, max: u8) -> Result<Option<u8>, SpecError> {
        let number = self.number16(key, u16::from(min), u16::from(max))?;
        Ok(number.and_then(|n| u8::try_from(n).ok()))
    }

    pub(super) fn number16(
        &mut self,
        key: &str,
        min: u16,
        max: u16,
    ) -> Result<Option<u16>, SpecError> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match value.parse().ok().filter(|n| (min..=max).contains(n)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.bad(key, value, format!("a number from {min} to {max}"))),
        }
    }

    pub(super) fn number64(&mut self, key: &str) -> Result<Option<u64>, SpecError> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        value
            .parse()
            .map(Some)
            .map_err(|_| self.bad(key, value, "a number of 64 bits"))
    }

    /// What no shape has taken is not known in this combination.
    fn finish(self) -> Result<(), SpecError> {
        let key = self.left.first().map(|(key, _)| *key).or(self.word);
        match key {
            Some(key) => Err(self.fail(SpecFault::Key {
                key: key.to_owned(),
                shape: self.shape,
                known: self.known,
            })),
            None => Ok(()),
        }
    }
}
