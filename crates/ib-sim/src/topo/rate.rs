//! Link widths and speeds: the masks of a port, and what two ports agree on.

use std::fmt;

/// A set of link widths, as PortInfo's LinkWidthEnabled has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Widths(u8);

impl Widths {
    /// No width.
    pub const NONE: Self = Self(0);
    /// 1x.
    pub const X1: Self = Self(1);
    /// 4x.
    pub const X4: Self = Self(2);
    /// 8x.
    pub const X8: Self = Self(4);
    /// 12x.
    pub const X12: Self = Self(8);
    /// 2x.
    pub const X2: Self = Self(16);
    /// Every width there is.
    pub const ALL: Self = Self(31);

    /// Widest first: the order in which two ports choose.
    const ORDER: [(Self, &'static str); 5] = [
        (Self::X12, "12x"),
        (Self::X8, "8x"),
        (Self::X4, "4x"),
        (Self::X2, "2x"),
        (Self::X1, "1x"),
    ];

    /// The set of the mask's bits; `None` where it has an unknown bit or none.
    #[must_use]
    pub const fn from_mask(mask: u8) -> Option<Self> {
        if mask == 0 || mask > 31 {
            None
        } else {
            Some(Self(mask))
        }
    }

    /// LinkWidthEnabled.
    #[must_use]
    pub const fn mask(self) -> u8 {
        self.0
    }

    /// What a port has enabled that shows this width as active: the width itself and 1x, which
    /// every port has, and 4x under 12x.
    #[must_use]
    pub fn up_to(label: &str) -> Option<Self> {
        let (width, _) = Self::ORDER.into_iter().find(|(_, name)| *name == label)?;
        let below = if width == Self::X12 { Self::X4.0 } else { 0 };
        Some(Self(width.0 | Self::X1.0 | below))
    }

    /// The widths in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The widest of the set, alone; [`Widths::NONE`] of an empty set.
    #[must_use]
    pub fn widest(self) -> Self {
        Self::ORDER
            .into_iter()
            .find(|(w, _)| self.0 & w.0 != 0)
            .map_or(Self::NONE, |(w, _)| w)
    }

    /// Lanes of the widest: 1, 2, 4, 8, 12; 0 of an empty set.
    #[must_use]
    pub fn lanes(self) -> u8 {
        match self.widest() {
            Self::X12 => 12,
            Self::X8 => 8,
            Self::X4 => 4,
            Self::X2 => 2,
            Self::X1 => 1,
            _ => 0,
        }
    }
}

impl fmt::Display for Widths {
    /// The widest, as ibnetdiscover prints it: `4x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ORDER
            .into_iter()
            .find(|(w, _)| self.0 & w.0 != 0)
            .map_or("???", |(_, n)| n);
        f.write_str(name)
    }
}

/// A set of link speeds, one bit a generation, over all the fields that PortInfo spreads them on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Speeds(u16);

impl Speeds {
    /// No speed.
    pub const NONE: Self = Self(0);
    /// 2.5 Gb/s a lane.
    pub const SDR: Self = Self(1);
    /// 5 Gb/s a lane.
    pub const DDR: Self = Self(1 << 1);
    /// 10 Gb/s a lane.
    pub const QDR: Self = Self(1 << 2);
    /// 10.3125 Gb/s a lane, of Mellanox only.
    pub const FDR10: Self = Self(1 << 3);
    /// 14.0625 Gb/s a lane.
    pub const FDR: Self = Self(1 << 4);
    /// 25.78125 Gb/s a lane.
    pub const EDR: Self = Self(1 << 5);
    /// 53.125 Gb/s a lane.
    pub const HDR: Self = Self(1 << 6);
    /// 106.25 Gb/s a lane.
    pub const NDR: Self = Self(1 << 7);
    /// 212.5 Gb/s a lane.
    pub const XDR: Self = Self(1 << 8);

    /// Slowest first.
    const ORDER: [(Self, &'static str); 9] = [
        (Self::SDR, "SDR"),
        (Self::DDR, "DDR"),
        (Self::QDR, "QDR"),
        (Self::FDR10, "FDR10"),
        (Self::FDR, "FDR"),
        (Self::EDR, "EDR"),
        (Self::HDR, "HDR"),
        (Self::NDR, "NDR"),
        (Self::XDR, "XDR"),
    ];

    /// The set that a net file's masks mean: `s=` (SDR 1, DDR 2, QDR 4) and `e=` (FDR 1, EDR 2,
    /// HDR 4, NDR 8). `None` where a mask has an unknown bit.
    #[must_use]
    pub fn from_masks(base: u8, ext: u8) -> Option<Self> {
        (base <= 7 && ext <= 15).then_some(Self(u16::from(base) | u16::from(ext) << 4))
    }

    /// LinkSpeedEnabled: SDR 1, DDR 2, QDR 4.
    #[must_use]
    pub const fn base_mask(self) -> u8 {
        self.0.to_le_bytes()[0] & 7
    }

    /// LinkSpeedExtEnabled: FDR 1, EDR 2, HDR 4, NDR 8.
    #[must_use]
    pub const fn ext_mask(self) -> u8 {
        self.0.to_le_bytes()[0] >> 4
    }

    /// What a port has enabled that shows this speed as active: it and all slower ones.
    #[must_use]
    pub fn up_to(label: &str) -> Option<Self> {
        let (speed, _) = Self::ORDER.into_iter().find(|(_, name)| *name == label)?;
        Some(Self(speed.0 | (speed.0 - 1)))
    }

    /// Is every speed of `other` in this set?
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The speeds in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The speeds in either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The fastest of the set, alone; [`Speeds::NONE`] of an empty set.
    #[must_use]
    pub fn fastest(self) -> Self {
        Self::ORDER
            .into_iter()
            .rev()
            .find(|(s, _)| self.contains(*s))
            .map_or(Self::NONE, |(s, _)| s)
    }
}

impl fmt::Display for Speeds {
    /// The fastest, as ibnetdiscover prints it: `EDR`; `???` of an empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ORDER
            .into_iter()
            .rev()
            .find(|(s, _)| self.contains(*s))
            .map_or("???", |(_, n)| n);
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::{Speeds, Widths};

    #[test]
    fn labels_and_masks_agree_with_ibsim() {
        // sim_net.c: parse_port_link_width_and_speed.
        for (label, base, ext) in [
            ("SDR", 1, 0),
            ("DDR", 3, 0),
            ("QDR", 7, 0),
            ("FDR10", 7, 0),
            ("FDR", 7, 1),
            ("EDR", 7, 3),
            ("HDR", 7, 7),
            ("NDR", 7, 15),
        ] {
            let speeds = Speeds::up_to(label).unwrap();
            assert_eq!(
                (speeds.base_mask(), speeds.ext_mask()),
                (base, ext),
                "{label}"
            );
            assert_eq!(speeds.to_string(), label);
        }
        assert_eq!(Widths::up_to("4x").unwrap().mask(), 3);
        assert_eq!(Widths::up_to("12x").unwrap().mask(), 11);
        assert_eq!(Widths::up_to("3x"), None);
        for (label, lanes) in [("1x", 1), ("2x", 2), ("4x", 4), ("8x", 8), ("12x", 12)] {
            let widths = Widths::up_to(label).unwrap();
            assert_eq!(
                (
                    widths.to_string().as_str(),
                    widths.lanes(),
                    widths.widest().lanes()
                ),
                (label, lanes, lanes)
            );
        }
    }

    #[test]
    fn two_ports_agree_on_the_best_they_share() {
        let edr = Speeds::up_to("EDR").unwrap();
        let fdr = Speeds::up_to("FDR").unwrap();
        assert_eq!(edr.and(fdr).fastest(), Speeds::FDR);
        assert_eq!(Widths::ALL.and(Widths::X1).widest(), Widths::X1);
        assert_eq!(Widths::X2.and(Widths::X4).widest(), Widths::NONE);
        assert_eq!(Speeds::from_masks(8, 0), None);
    }
}
