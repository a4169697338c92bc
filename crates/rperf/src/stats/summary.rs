//! The numbers of a distribution that people read.

use serde::{Deserialize, Serialize};

use super::{Distribution, Quantile};

/// A distribution in a few numbers, all times in ns.
///
/// A quantile is there only where at least one sample lies beyond it: the 99.9% of a hundred
/// samples is nothing but their greatest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The median.
    pub p50: u64,
    /// 90% are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<u64>,
    /// 99% are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<u64>,
    /// 99.9% are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<u64>,
    /// 99.99% are at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<u64>,
    /// The greatest.
    pub max: u64,
    /// The mean, exact.
    pub mean: f64,
    /// The deviation, exact; not there below two samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
}

impl Summary {
    /// Of a distribution; nothing where nothing was recorded.
    #[must_use]
    pub fn of(distribution: &Distribution) -> Option<Self> {
        let beyond = |quantile: Quantile| {
            let there = quantile.rank(distribution.count()) < distribution.count();
            distribution.quantile(quantile).filter(|_| there)
        };
        Some(Self {
            count: distribution.count(),
            min: distribution.min()?,
            p50: distribution.quantile(Quantile::P50)?,
            p90: beyond(Quantile::P90),
            p99: beyond(Quantile::P99),
            p99_9: beyond(Quantile::P999),
            p99_99: beyond(Quantile::P9999),
            max: distribution.max()?,
            mean: distribution.mean()?,
            deviation: distribution.deviation(),
        })
    }
}
