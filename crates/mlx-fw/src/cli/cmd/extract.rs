//! `mlx-fw extract`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rdma_cli::{Context, Exit, Failure};
use sha2::{Digest, Sha256};

use crate::Psid;
use crate::archive::mfa2::{Archive, Limits};
use crate::cli::render;
use crate::cli::source::{about, psid, read};
use crate::image::Image;
use crate::report::{ExtractReport, ExtractedFile};

/// Take an image out of an archive
#[derive(Debug, clap::Args)]
#[command(
    group(clap::ArgGroup::new("which").required(true).args(["psid", "all"])),
    after_help = "Exit codes: 0 written, 3 no archive or corrupt, 4 PSID not in the archive, 7 the file is there already"
)]
pub(crate) struct Cmd {
    /// An MFA2 archive; `-` is standard input
    archive: PathBuf,

    /// The board whose image is taken out
    #[arg(long, value_name = "PSID", value_parser = psid)]
    psid: Option<Psid>,

    /// Where it is written; else ARCHIVE-PSID.bin in the current folder
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    to: Option<PathBuf>,

    /// Take out the images of all boards, into a folder
    #[arg(long, value_name = "DIR")]
    all: Option<PathBuf>,

    /// Replace files that are there already
    #[arg(long)]
    yes: bool,
}

impl Cmd {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        if ctx.global().output.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "output",
                "-o takes the report; the image goes to the file of --to",
            )
            .with_hint("write --to FILE instead of -o FILE"));
        }
        let bytes = read(&self.archive)?;
        let archive = Archive::parse(&bytes).map_err(about(&self.archive))?;
        let mut files = Vec::new();
        if let Some(folder) = &self.all {
            std::fs::create_dir_all(folder).map_err(|error| {
                Failure::from(error).with_context(format!("cannot make {}", folder.display()))
            })?;
            self.write_all(ctx, &archive, folder, &mut files)?;
        } else if let Some(psid) = self.psid {
            let image = archive
                .extract(psid, &Limits::default())
                .map_err(about(&self.archive))?;
            let path = self.to.clone().unwrap_or_else(|| self.name(psid));
            files.push(self.write(&path, psid, &image)?);
        }
        ctx.emit(&ExtractReport { files }, render::extract::text)?;
        Ok(Exit::Ok)
    }

    /// The name of the file of a board.
    fn name(&self, psid: Psid) -> PathBuf {
        let stem = self
            .archive
            .file_stem()
            .filter(|stem| *stem != "-")
            .map_or_else(|| "firmware".into(), |stem| stem.to_string_lossy());
        // A PSID from outside must not lead into another folder.
        let psid: String = psid
            .to_string()
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                    c
                } else {
                    '_'
                }
            })
            .collect();
        PathBuf::from(format!("{stem}-{psid}.bin"))
    }

    fn write(&self, path: &Path, psid: Psid, image: &[u8]) -> Result<ExtractedFile, Failure> {
        rdma_cli::write_file(path, image, self.yes)?;
        let info =
            Image::parse(image).and_then(|image| image.image_info().map(|info| info.version()));
        Ok(ExtractedFile {
            psid: psid.to_string(),
            path: path.display().to_string(),
            size: image.len() as u64,
            fw_version: info.ok().map(|version| version.to_string()),
            sha256: Sha256::digest(image)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        })
    }

    fn write_all(
        &self,
        ctx: &Context,
        archive: &Archive<'_>,
        folder: &Path,
        files: &mut Vec<ExtractedFile>,
    ) -> Result<(), Failure> {
        let mut boards: BTreeMap<usize, Vec<Psid>> = BTreeMap::new();
        for device in archive.devices() {
            for component in &device.components {
                boards.entry(*component).or_default().push(device.psid);
            }
        }
        let progress = ctx.progress("unpacking");
        let mut failed = None;
        let visited = archive.extract_all(&Limits::default(), |index, image| {
            for psid in boards.get(&index).into_iter().flatten() {
                if failed.is_none() {
                    match self.write(&folder.join(self.name(*psid)), *psid, &image) {
                        Ok(file) => files.push(file),
                        Err(failure) => failed = Some(failure),
                    }
                }
            }
            Ok(())
        });
        drop(progress);
        visited.map_err(about(&self.archive))?;
        failed.map_or(Ok(()), Err)
    }
}
