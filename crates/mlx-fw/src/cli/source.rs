//! The file that a command is about.

use std::path::{Path, PathBuf};

use rdma_cli::{Context, Exit, Failure};

use crate::archive::mfa2::{Archive, Limits};
use crate::cli::Compat;
use crate::image::{Container, detect};
use crate::{Error, Psid};

/// The largest file that is read: the largest flash has 64 MiB, the largest archive known 2 MiB.
const LARGEST: u64 = 256 << 20;

/// An image, in a file of its own or in an archive.
#[derive(Debug, clap::Args)]
pub(super) struct Source {
    /// An image, or an archive with --psid; `-` is standard input
    pub(super) file: PathBuf,

    /// Which board's image, where FILE is an archive
    #[arg(long, value_name = "PSID", value_parser = psid)]
    pub(super) psid: Option<Psid>,

    /// Print the text of another program, with its exit code
    #[arg(long, value_name = "PROGRAM")]
    pub(super) compat: Option<Compat>,
}

/// Reads a PSID of the command line.
pub(super) fn psid(text: &str) -> Result<Psid, String> {
    Psid::new(text).ok_or_else(|| "a PSID has 1 to 16 characters".to_owned())
}

/// Reads a file whole.
pub(super) fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    rdma_cli::read_file(file, LARGEST)
}

/// Says which file an error is about.
pub(super) fn about(file: &Path) -> impl Fn(Error) -> Failure + '_ {
    move |error| match &error {
        Error::NoPsid { .. } => Failure::from(error),
        _ => Failure::from(error).with_context(format!("cannot read {}", file.display())),
    }
}

impl Source {
    /// Prints another program's text, where it is asked for; `text` makes it of the bytes and the
    /// file's name, and says whether that program would be content.
    pub(super) fn compat(
        &self,
        ctx: &mut Context,
        bytes: &[u8],
        text: impl FnOnce(&[u8], &str) -> (String, bool),
    ) -> Result<Option<Exit>, Failure> {
        let Some(Compat::Flint) = self.compat else {
            return Ok(None);
        };
        let (text, content) = text(bytes, &self.file.display().to_string());
        ctx.print_raw(&text)?;
        Ok(Some(if content { Exit::Ok } else { Exit::No }))
    }

    /// The bytes of the image.
    pub(super) fn image(&self) -> Result<Vec<u8>, Failure> {
        let bytes = read(&self.file)?;
        let archive = detect(&bytes) == Container::Mfa2;
        match self.psid {
            None => Ok(bytes),
            Some(psid) if archive => Archive::parse(&bytes)
                .and_then(|archive| archive.extract(psid, &Limits::default()))
                .map_err(about(&self.file)),
            Some(_) => Err(Failure::new(
                Exit::Usage,
                "not-an-archive",
                format!(
                    "{} is no archive that --psid could choose from",
                    self.file.display()
                ),
            )
            .with_hint("leave --psid away to read the file itself")),
        }
    }
}
