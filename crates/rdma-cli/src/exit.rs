//! The one table of exit codes.

use std::process::ExitCode;

/// How a command ended. Every binary uses these codes and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Done, or there was nothing to do.
    Ok = 0,
    /// The answer is no: a mismatch was verified, a problem was found, a bar was not reached.
    No = 1,
    /// The command line is wrong.
    Usage = 2,
    /// An input file is unreadable, of another format, or corrupt.
    Input = 3,
    /// There is no such device, port, parameter or section.
    Missing = 4,
    /// Permission is lacking.
    Denied = 5,
    /// A device failed or did not answer in time.
    Device = 6,
    /// A safeguard refused: it takes `--yes` or an `--allow-…` flag.
    Refused = 7,
    /// A bug of this program.
    Bug = 70,
    /// Interrupted, with everything left consistent.
    Interrupted = 130,
}

impl Exit {
    /// All codes, in their order.
    pub const ALL: [Self; 10] = [
        Self::Ok,
        Self::No,
        Self::Usage,
        Self::Input,
        Self::Missing,
        Self::Denied,
        Self::Device,
        Self::Refused,
        Self::Bug,
        Self::Interrupted,
    ];

    /// The number that the process ends with.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// What the code means, as the manuals print it.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Ok => "done, or nothing to do",
            Self::No => "the answer is no (mismatch, problem found, below the bar)",
            Self::Usage => "wrong command line",
            Self::Input => "input file unreadable, of another format, or corrupt",
            Self::Missing => "no such device, port, parameter or section",
            Self::Denied => "permission denied",
            Self::Device => "device failed or did not answer in time",
            Self::Refused => "refused without --yes or an --allow-... flag",
            Self::Bug => "a bug of this program",
            Self::Interrupted => "interrupted, left consistent",
        }
    }

    /// The table as `--help` and the manuals show it.
    #[must_use]
    pub fn table() -> String {
        let mut text = String::from("Exit codes:\n");
        for exit in Self::ALL {
            text.push_str(&format!("  {:>3}  {}\n", exit.code(), exit.meaning()));
        }
        text
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
