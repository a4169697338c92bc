//! How a test goes: what both sides have to agree on, and what each decides for itself.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::spec::{Amount, Metric, Spec, Transport, Verb};

/// A test. Both sides have to agree on all but `tx_depth` and what follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What a request does.
    pub verb: Verb,
    /// What is wanted of it.
    pub metric: Metric,
    /// What carries it.
    pub transport: Transport,
    /// Bytes of a message, one measurement after the other.
    pub sizes: Vec<u32>,
    /// When each ends.
    pub amount: Amount,
    /// What does not count at either end of a duration.
    pub margin: Duration,
    /// How often each size is measured.
    pub repeats: u32,
    /// How many queue pairs.
    pub qps: u32,
    /// Whether both sides send.
    pub bidirectional: bool,
    /// How many requests of a queue pair are on their way at most.
    pub tx_depth: u32,
    /// How many receive requests a queue pair has.
    pub rx_depth: u32,
    /// Every which request has a completion.
    pub cq_mod: u32,
    /// Up to how many bytes travel inside the request.
    pub inline: u32,
    /// Replaces where the peer's word is what is expected, instead of adding to it.
    pub compare_swap: bool,
}

/// Bytes before a datagram in its receiver's buffer.
pub const GRH: u32 = 40;

impl Plan {
    /// With perftest's defaults.
    #[must_use]
    pub fn new(verb: Verb, metric: Metric, transport: Transport) -> Self {
        let latency = metric == Metric::Latency;
        let size = match (verb, latency) {
            (Verb::Atomic, _) => 8,
            (_, true) => 2,
            (_, false) => 65_536,
        };
        let count = if verb == Verb::Write && !latency {
            5000
        } else {
            1000
        };
        Self {
            verb,
            metric,
            transport,
            sizes: vec![size],
            amount: Amount::Iterations(NonZeroU64::new(count).unwrap_or(NonZeroU64::MIN)),
            margin: Duration::ZERO,
            repeats: 1,
            qps: 1,
            bidirectional: false,
            tx_depth: if latency { 1 } else { 128 },
            rx_depth: 512,
            cq_mod: if latency { 1 } else { 100 },
            inline: match (verb, latency, transport) {
                (Verb::Send, true, Transport::Ud) => 188,
                (Verb::Send, true, _) => 236,
                (Verb::Write, true, _) => 220,
                _ => 0,
            },
            compare_swap: false,
        }
    }

    /// How many requests of each queue pair, where they are counted.
    #[must_use]
    pub const fn iterations(&self) -> Option<u64> {
        match self.amount {
            Amount::Iterations(count) => Some(count.get()),
            Amount::Duration(_) => None,
        }
    }

    /// How long it is measured, and for how long before and behind that it is not; none where requests are
    /// counted.
    #[must_use]
    pub fn times(&self) -> Option<(Duration, Duration)> {
        match self.amount {
            Amount::Iterations(_) => None,
            Amount::Duration(whole) => Some((whole.saturating_sub(self.margin * 2), self.margin)),
        }
    }

    /// What is measured of one size.
    #[must_use]
    pub fn spec(&self, size: u32) -> Spec {
        let positive = |number| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
        Spec {
            verb: self.verb,
            metric: self.metric,
            transport: self.transport,
            size,
            amount: self.amount,
            qps: positive(self.qps),
            tx_depth: positive(self.tx_depth),
            bidirectional: self.bidirectional,
        }
    }

    /// Whether another side's plan fits this one.
    ///
    /// # Errors
    ///
    /// [`Error::Plans`] with what differs.
    pub fn fits(&self, other: &Self) -> Result<(), Error> {
        fn same<T: PartialEq + fmt::Debug>(
            field: &'static str,
            own: &T,
            theirs: &T,
        ) -> Result<(), Error> {
            if own == theirs {
                return Ok(());
            }
            Err(Error::Plans {
                field,
                own: format!("{own:?}"),
                theirs: format!("{theirs:?}"),
            })
        }
        let test = |plan: &Self| plan.to_string();
        if test(self) != test(other) {
            return Err(Error::Plans {
                field: "the test",
                own: test(self),
                theirs: test(other),
            });
        }
        same("the sizes", &self.sizes, &other.sizes)?;
        same("the amount", &self.amount, &other.amount)?;
        same("the number of repeats", &self.repeats, &other.repeats)?;
        same("the number of queue pairs", &self.qps, &other.qps)?;
        same(
            "whether both sides send",
            &self.bidirectional,
            &other.bidirectional,
        )
    }

    /// The largest size.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// Every which request of that size has a completion: large ones each, as perftest does.
    #[must_use]
    pub fn moderation(&self, size: u32) -> u64 {
        if size > 8192 {
            1
        } else {
            self.cq_mod.min(self.tx_depth).max(1).into()
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, metric) = (self.verb.name(), self.metric.name());
        write!(f, "{verb} {metric}, {}", self.transport.name())
    }
}
