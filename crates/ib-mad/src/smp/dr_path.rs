//! Directed routes: the way to a node as a list of out-ports (IBTA 14.2.2).

use core::fmt;
use core::str::FromStr;

/// The most hops that a directed route has room for.
pub const MAX_HOPS: u8 = 63;

/// The way to a node, as the port by which each node on the way is left.
///
/// Prints as the diagnostics do, with a leading 0: `0` is the local node, `0,1,5` is behind port 5
/// of what is behind its port 1.
#[derive(Clone, Copy)]
pub struct DrPath {
    hops: u8,
    /// As in an SMP: `[0]` is not used, beyond `hops` all is zero.
    ports: [u8; 64],
}

/// Why a directed route cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrPathError {
    /// It would have more hops than an SMP has room for.
    #[error("a directed route has {MAX_HOPS} hops at most")]
    TooLong,
    /// The text is no list of ports.
    #[error("{text:?} is no directed route: a list of ports such as \"0,1,5\" is wanted")]
    Text {
        /// What was given.
        text: String,
    },
}

impl DrPath {
    /// The local node.
    pub const LOCAL: Self = Self {
        hops: 0,
        ports: [0; 64],
    };

    /// How many hops it has, 0 to 63.
    #[must_use]
    pub const fn hops(&self) -> u8 {
        self.hops
    }

    /// The out-ports, first hop first.
    #[must_use]
    pub fn ports(&self) -> &[u8] {
        self.ports
            .get(1..=usize::from(self.hops))
            .unwrap_or_default()
    }

    /// The same way and one hop more.
    ///
    /// # Errors
    /// [`DrPathError::TooLong`] after 63 hops.
    pub fn extended(mut self, port: u8) -> Result<Self, DrPathError> {
        if self.hops >= MAX_HOPS {
            return Err(DrPathError::TooLong);
        }
        self.hops += 1;
        if let Some(slot) = self.ports.get_mut(usize::from(self.hops)) {
            *slot = port;
        }
        Ok(self)
    }

    /// From out-ports, first hop first.
    ///
    /// # Errors
    /// [`DrPathError::TooLong`] where there are more than 63.
    pub fn from_ports(ports: &[u8]) -> Result<Self, DrPathError> {
        ports
            .iter()
            .try_fold(Self::LOCAL, |path, &port| path.extended(port))
    }

    /// The initial path of an SMP.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; 64] {
        self.ports
    }
}

impl PartialEq for DrPath {
    fn eq(&self, other: &Self) -> bool {
        self.ports() == other.ports()
    }
}

impl Eq for DrPath {}

impl Default for DrPath {
    fn default() -> Self {
        Self::LOCAL
    }
}

impl fmt::Display for DrPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0")?;
        self.ports()
            .iter()
            .try_for_each(|port| write!(f, ",{port}"))
    }
}

impl fmt::Debug for DrPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DrPath {
    type Err = DrPathError;

    fn from_str(text: &str) -> Result<Self, DrPathError> {
        let error = || DrPathError::Text {
            text: text.chars().take(256).collect(),
        };
        let mut path = Self::LOCAL;
        for (index, item) in text.split(',').enumerate() {
            let port: u8 = item.trim().parse().map_err(|_| error())?;
            match (index, port) {
                (0, 0) => {}
                (0, _) => return Err(error()),
                _ => path = path.extended(port)?,
            }
        }
        Ok(path)
    }
}
