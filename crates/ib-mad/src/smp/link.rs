//! Widths and speeds of links, as tables.

use core::fmt;

/// How many lanes a link uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LinkWidth {
    /// So many lanes: 1, 2, 4, 8 or 12.
    Lanes(u8),
    /// A code without a meaning, as it came.
    Other(u8),
}

/// Code, lanes, name.
const WIDTHS: [(u8, u8, &str); 5] = [
    (1, 1, "1x"),
    (2, 4, "4x"),
    (4, 8, "8x"),
    (8, 12, "12x"),
    (16, 2, "2x"),
];

impl LinkWidth {
    /// From LinkWidthActive.
    #[must_use]
    pub const fn of(code: u8) -> Self {
        match code {
            1 => Self::Lanes(1),
            2 => Self::Lanes(4),
            4 => Self::Lanes(8),
            8 => Self::Lanes(12),
            16 => Self::Lanes(2),
            _ => Self::Other(code),
        }
    }

    /// The LinkWidthActive code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Lanes(lanes) => WIDTHS
                .iter()
                .find(|row| row.1 == lanes)
                .map_or(0, |row| row.0),
            Self::Other(code) => code,
        }
    }

    /// How many lanes, where that is known.
    #[must_use]
    pub const fn lanes(self) -> Option<u8> {
        match self {
            Self::Lanes(lanes) => Some(lanes),
            Self::Other(_) => None,
        }
    }

    /// `1x` to `12x`; `??` for a code without a meaning.
    #[must_use]
    pub fn name(self) -> &'static str {
        let code = self.code();
        WIDTHS
            .iter()
            .find(|row| row.0 == code)
            .map_or("??", |row| row.2)
    }
}

impl fmt::Display for LinkWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How fast a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LinkSpeed {
    /// No speed, or a code without a meaning, as it came.
    Other(u8),
    /// 2.5 Gb/s.
    Sdr,
    /// 5 Gb/s.
    Ddr,
    /// 10 Gb/s.
    Qdr,
    /// 10.3125 Gb/s, a Mellanox speed.
    Fdr10,
    /// 14.0625 Gb/s.
    Fdr,
    /// 25.78125 Gb/s.
    Edr,
    /// 53.125 Gb/s.
    Hdr,
    /// 106.25 Gb/s.
    Ndr,
    /// 212.5 Gb/s.
    Xdr,
}

/// One row of the table of speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeedFacts {
    /// Which speed.
    pub speed: LinkSpeed,
    /// What everybody calls it.
    pub name: &'static str,
    /// LinkSpeedActive.
    pub code: u8,
    /// LinkSpeedExtActive, and from 32 on LinkSpeedExtActive2 times 32; 0 where it has none.
    pub ext_code: u8,
    /// Signalling rate of a lane, kb/s.
    pub lane_kbps: u32,
    /// What 4 lanes are sold as, Gb/s.
    pub nominal_4x_gbps: u16,
}

impl LinkSpeed {
    /// All speeds, slowest first.
    pub const TABLE: [SpeedFacts; 9] = [
        row(Self::Sdr, "SDR", 1, 0, 2_500_000, 10),
        row(Self::Ddr, "DDR", 2, 0, 5_000_000, 20),
        row(Self::Qdr, "QDR", 4, 0, 10_000_000, 40),
        row(Self::Fdr10, "FDR10", 4, 0, 10_312_500, 40),
        row(Self::Fdr, "FDR", 4, 1, 14_062_500, 56),
        row(Self::Edr, "EDR", 4, 2, 25_781_250, 100),
        row(Self::Hdr, "HDR", 4, 4, 53_125_000, 200),
        row(Self::Ndr, "NDR", 4, 8, 106_250_000, 400),
        row(Self::Xdr, "XDR", 4, 32, 212_500_000, 800),
    ];

    /// From LinkSpeedActive and what the vendor's attribute says.
    #[must_use]
    pub const fn of(code: u8, fdr10: bool) -> Self {
        match code {
            4 if fdr10 => Self::Fdr10,
            1 => Self::Sdr,
            2 => Self::Ddr,
            4 => Self::Qdr,
            other => Self::Other(other),
        }
    }

    /// From an extended code, see [`SpeedFacts::ext_code`].
    #[must_use]
    pub fn of_ext(code: u8) -> Self {
        Self::TABLE
            .iter()
            .find(|row| code != 0 && row.ext_code == code)
            .map_or(Self::Other(code), |row| row.speed)
    }

    /// By its name, in any case.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::TABLE
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(name))
            .map(|row| row.speed)
    }

    /// Its row of the table.
    #[must_use]
    pub fn facts(self) -> Option<&'static SpeedFacts> {
        const TABLE: &[SpeedFacts] = &LinkSpeed::TABLE;
        TABLE.iter().find(|row| row.speed == self)
    }

    /// What everybody calls it; `???` for a code without a meaning.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().map_or("???", |row| row.name)
    }

    /// What a link of this speed carries as it is sold, Gb/s: HDR on 2 lanes is 100.
    #[must_use]
    pub fn nominal_gbps(self, width: LinkWidth) -> Option<u16> {
        let lanes = u16::from(width.lanes()?);
        Some(self.facts()?.nominal_4x_gbps * lanes / 4)
    }
}

const fn row(
    speed: LinkSpeed,
    name: &'static str,
    code: u8,
    ext_code: u8,
    lane_kbps: u32,
    nominal_4x_gbps: u16,
) -> SpeedFacts {
    SpeedFacts {
        speed,
        name,
        code,
        ext_code,
        lane_kbps,
        nominal_4x_gbps,
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
