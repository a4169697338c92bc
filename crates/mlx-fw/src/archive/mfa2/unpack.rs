//! Taking the images out of the block, as a stream and within limits.

use std::io::Read;

use lzma_rust2::XzReader;

use super::{Archive, MARKER};
use crate::image::{Container, detect, masked_format};
use crate::{Error, Result};

/// How much of an archive is unpacked at most. What an archive says about its sizes counts for
/// nothing: these bound what really comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of one image, which is held in memory.
    pub component: u64,
    /// The bytes of all images, which pass by.
    pub total: u64,
    /// The KiB that the decompressor may take for its dictionary.
    pub memory_kib: u32,
}

impl Limits {
    /// For a fuzzer: enough for what it makes, and quickly over.
    pub const SMALL: Self = Self {
        component: 1 << 20,
        total: 4 << 20,
        memory_kib: 16 << 10,
    };
}

/// 128 MiB for an image (the largest flash has 64), 2 GiB in all, 128 MiB for the decompressor.
impl Default for Limits {
    fn default() -> Self {
        Self {
            component: 128 << 20,
            total: 2 << 30,
            memory_kib: 128 << 10,
        }
    }
}

/// Hands each image of `wanted` to `each`, its magic put back, in the order of the block. Stops
/// after the last one; where that is the last of the block, the end of the block is checked too.
///
/// Returns how many bytes came out of the block.
pub(super) fn visit(
    archive: &Archive<'_>,
    limits: &Limits,
    wanted: &[usize],
    mut each: impl FnMut(usize, Vec<u8>) -> Result<()>,
) -> Result<u64> {
    let mut order: Vec<(usize, super::Component)> = wanted
        .iter()
        .filter_map(|&index| Some((index, *archive.components().get(index)?)))
        .collect();
    order.sort_by_key(|(index, component)| (component.offset, *index));
    for (_, component) in &order {
        limit("an image", component.size, limits.component)?;
    }

    let mut rest = archive.block;
    let mut stream = Stream {
        reader: XzReader::new_mem_limit(&mut rest, false, limits.memory_kib),
        at: archive.block_offset,
        done: 0,
        total: limits.total,
    };
    for (index, component) in &order {
        let problem = |problem| Error::Component {
            index: *index,
            offset: component.offset,
            problem,
        };
        if component.offset < stream.done {
            return Err(problem("lies where another one is"));
        }
        if stream.skip(component.offset - stream.done)? != 0 {
            return Err(problem("starts beyond the end of the block"));
        }
        if stream.take(MARKER.len() as u64)? != MARKER {
            return Err(problem("does not start with the marker of a component"));
        }
        let mut bytes = stream.take(component.size)?;
        if bytes.len() as u64 != component.size {
            return Err(problem("ends beyond the end of the block"));
        }
        unmask(&mut bytes);
        each(*index, bytes)?;
    }
    let done = if wanted.len() == archive.components().len() {
        stream.skip(u64::MAX)?;
        let done = stream.done;
        drop(stream);
        if rest.iter().any(|byte| *byte != 0) {
            return Err(Error::Decompress {
                offset: archive.block_offset,
                done,
                reason: "something other than padding follows the end of the stream".to_owned(),
            });
        }
        done
    } else {
        stream.done
    };
    Ok(done)
}

fn limit(what: &'static str, size: u64, limit: u64) -> Result<()> {
    if size > limit {
        return Err(Error::Limit { what, size, limit });
    }
    Ok(())
}

/// Puts back the magic, which archives mask so that a component is not taken for an image that a
/// device may start.
fn unmask(bytes: &mut [u8]) {
    if !matches!(detect(bytes), Container::Image(..))
        && let Some(format) = masked_format(bytes)
        && let Some(place) = bytes.first_chunk_mut::<16>()
    {
        *place = format.magic();
    }
}

/// The unpacked block, passing by.
struct Stream<'a, 'b> {
    reader: XzReader<&'a mut &'b [u8]>,
    /// Where the block starts in the file.
    at: u64,
    /// How many bytes came out.
    done: u64,
    /// How many may.
    total: u64,
}

impl Stream<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let read = self
            .reader
            .read(buffer)
            .map_err(|error| Error::Decompress {
                offset: self.at,
                done: self.done,
                reason: error.to_string(),
            })?;
        self.done += read as u64;
        limit("the unpacked block", self.done, self.total)?;
        Ok(read)
    }

    /// Passes over `len` bytes; returns how many were lacking.
    fn skip(&mut self, mut len: u64) -> Result<u64> {
        let mut buffer = vec![0; 1 << 16];
        while len != 0 {
            let want = usize::try_from(len).unwrap_or(usize::MAX).min(buffer.len());
            match self.read(buffer.get_mut(..want).unwrap_or_default())? {
                0 => break,
                read => len -= read as u64,
            }
        }
        Ok(len)
    }

    /// The next `len` bytes, or fewer at the end. Memory grows with what really comes.
    fn take(&mut self, len: u64) -> Result<Vec<u8>> {
        const STEP: usize = 1 << 18;
        let mut bytes = Vec::new();
        loop {
            let lacking = len - bytes.len() as u64;
            let want = usize::try_from(lacking).unwrap_or(usize::MAX).min(STEP);
            if want == 0 {
                break;
            }
            let have = bytes.len();
            bytes.resize(have + want, 0);
            let read = self.read(bytes.get_mut(have..).unwrap_or_default())?;
            bytes.truncate(have + read);
            if read == 0 {
                break;
            }
        }
        Ok(bytes)
    }
}
