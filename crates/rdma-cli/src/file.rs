//! Reading and writing files, with their trouble explained.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::units::Bytes;
use crate::{Exit, Explain, Failure};

/// Reads a whole file of at most `limit` bytes; `-` is standard input.
///
/// Never reads more than `limit + 1` bytes, whatever the file claims or is.
///
/// # Errors
/// A [`Failure`] that names the file: not there, a directory, no permission (exit code 5), or
/// larger than `limit`; all others are exit code 3.
pub fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    if path.as_os_str() == "-" {
        return read_limited(io::stdin().lock(), 0, limit, "standard input");
    }
    let name = path.display();
    let file = File::open(path).map_err(|error| reading(path, error))?;
    let metadata = file.metadata().map_err(|error| reading(path, error))?;
    if metadata.is_dir() {
        return Err(Failure::new(
            Exit::Input,
            "is-a-directory",
            format!("{name} is a directory"),
        )
        .with_hint("name one file in it"));
    }
    if metadata.is_file() && metadata.len() > limit {
        return Err(too_large(
            &name.to_string(),
            &Bytes(metadata.len()).to_string(),
            limit,
        ));
    }
    // Room for a file as large as it says; anything else grows as it comes.
    let expected = if metadata.is_file() {
        metadata.len()
    } else {
        0
    };
    read_limited(file, expected, limit, &name.to_string())
}

fn reading(path: &Path, error: io::Error) -> Failure {
    let name = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(Exit::Input, "not-found", format!("no file {name}"))
                .with_hint("check the path")
        }
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::Denied,
            error.code(),
            format!("no permission to read {name}"),
        )
        .with_hint(format!("see who may: ls -l {name}")),
        _ => Failure::from(error).with_context(format!("cannot read {name}")),
    }
}

fn read_limited(
    source: impl Read,
    expected: u64,
    limit: u64,
    name: &str,
) -> Result<Vec<u8>, Failure> {
    // One byte more than is expected, so that the read that finds the end needs no more room.
    let room = usize::try_from(expected.saturating_add(1)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(room);
    source
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::from(error).with_context(format!("cannot read {name}")))?;
    if bytes.len() as u64 > limit {
        return Err(too_large(name, "more", limit));
    }
    Ok(bytes)
}

fn too_large(name: &str, size: &str, limit: u64) -> Failure {
    Failure::new(
        Exit::Input,
        "too-large",
        format!(
            "{name} is too large: {size}, where at most {} are read",
            Bytes(limit)
        ),
    )
    .with_hint("is it the right file?")
}

/// Writes a whole file so that it is there complete or not at all: a temporary file beside it,
/// synced, then renamed.
///
/// # Errors
/// A [`Failure`] that names the file; exit code 7 where it exists and `overwrite` is false.
pub fn write_file(path: &Path, bytes: &[u8], overwrite: bool) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;

    let name = path.display();
    let failed =
        |error: io::Error| Failure::from(error).with_context(format!("cannot write {name}"));
    if path.is_dir() {
        return Err(Failure::new(
            Exit::Input,
            "is-a-directory",
            format!("{name} is a directory"),
        )
        .with_hint("name a file in it"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // 0o666 less the umask, as any program would make it; the default of 0o600 is for secrets.
    let mut file = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let kept = if overwrite {
        file.persist(path)
    } else {
        file.persist_noclobber(path)
    };
    match kept {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            Err(
                Failure::new(Exit::Refused, "exists", format!("{name} is there already"))
                    .with_hint("choose another name, or add --yes to replace it"),
            )
        }
        Err(error) => Err(failed(error.error)),
    }
}
