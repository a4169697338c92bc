//! Makes MFA2 archives of our own.

use bytemuck::bytes_of;
use lzma_rust2::{XzOptions, XzWriter};
use rdma_wire::{Be16, Be32};
use sha2::{Digest, Sha256};
use std::io::Write;

use super::tlv::{
    ComponentDescriptor, ComponentPointer, MultiPart, PackageDescriptor, TlvHeader, TlvType,
    VersionTag,
};
use super::{FINGERPRINT, MARKER, XZ};
use crate::image::Image;
use crate::{Error, Result};

/// The compression level: little is gained above, and tests wait for it.
const PRESET: u32 = 3;

/// Makes an archive.
///
/// ```
/// use mlx_fw::archive::mfa2::{Archive, Builder, Limits};
/// use mlx_fw::{Psid, image};
///
/// let image = image::build::Builder::fs4().psid("MT_0000000217");
/// let bytes = Builder::new().image("MT_0000000217", image.component()?).build()?;
///
/// let archive = Archive::parse(&bytes)?;
/// let psid = Psid::new("MT_0000000217").expect("a short text");
/// assert_eq!(archive.extract(psid, &Limits::default())?, image.build()?);
/// # Ok::<(), mlx_fw::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    devices: Vec<(String, usize)>,
    components: Vec<Vec<u8>>,
    source: Option<String>,
    padding: usize,
    extra: Vec<u8>,
}

impl Builder {
    /// An archive with nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an image for a board. The image is what
    /// [`image::build::Builder::component`](crate::image::build::Builder::component) makes.
    #[must_use]
    pub fn image(mut self, psid: &str, component: Vec<u8>) -> Self {
        self.devices.push((psid.to_owned(), self.components.len()));
        self.components.push(component);
        self
    }

    /// Adds a board that takes the image that was added last.
    #[must_use]
    pub fn also(mut self, psid: &str) -> Self {
        let index = self.components.len().saturating_sub(1);
        self.devices.push((psid.to_owned(), index));
        self
    }

    /// Says where the archive comes from.
    #[must_use]
    pub fn source(mut self, text: &str) -> Self {
        self.source = Some(text.to_owned());
        self
    }

    /// Puts zeros after the xz stream, as older archives have.
    #[must_use]
    pub const fn padding(mut self, bytes: usize) -> Self {
        self.padding = bytes;
        self
    }

    /// Puts a TLV of a type that is not known after the package descriptor.
    #[must_use]
    pub fn unknown_tlv(mut self, kind: u8, value: &[u8]) -> Self {
        tlv(&mut self.extra, TlvType::new(kind), value);
        self
    }

    /// Makes the archive.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where a number does not fit into its field, and
    /// [`Error::Decompress`] where the compressor fails.
    pub fn build(&self) -> Result<Vec<u8>> {
        let mut plain = Vec::new();
        let mut offsets = Vec::new();
        for component in &self.components {
            offsets.push(plain.len() as u64);
            plain.extend(MARKER);
            plain.extend(component);
        }
        let mut block = compress(&plain)?;
        block.resize(block.len() + self.padding, 0);

        let descriptors = |block_offset: u32| -> Result<(Vec<u8>, Vec<usize>)> {
            self.descriptors(block_offset, &block, plain.len() as u64, &offsets)
        };
        // The length of the descriptors does not depend on what is in them.
        let (bytes, _) = descriptors(0)?;
        let (mut bytes, digests) = descriptors(number("the descriptors", bytes.len() as u64)?)?;
        let over_descriptors = Sha256::new_with_prefix(&bytes);
        let over_all = over_descriptors.clone().chain_update(&block);
        for (place, digest) in digests.iter().zip([over_all, over_descriptors]) {
            if let Some(place) = bytes.get_mut(*place..*place + 32) {
                place.copy_from_slice(&digest.finalize());
            }
        }
        bytes.extend(block);
        Ok(bytes)
    }

    /// The descriptors, and where the digests stand in them.
    fn descriptors(
        &self,
        block_offset: u32,
        block: &[u8],
        plain: u64,
        offsets: &[u64],
    ) -> Result<(Vec<u8>, Vec<usize>)> {
        let mut bytes = FINGERPRINT.to_vec();
        let package = PackageDescriptor {
            components: Be16::new(number("the components", self.components.len() as u64)?),
            devices: Be16::new(number("the devices", self.devices.len() as u64)?),
            block_offset: Be32::new(block_offset),
            block_size: Be32::new(number("the block", block.len() as u64)?),
            unpacked_high: high(plain),
            unpacked_low: low(plain),
            compression: XZ,
            reserved: [0; 3],
            user_data_offset: Be32::ZERO,
        };
        let version = VersionTag {
            major: 1,
            year: Be16::new(2025),
            // April: a package's month counts from 0.
            month: 3,
            day: 3,
            hour: 18,
            minutes: 27,
            seconds: 54,
            ..VersionTag::default()
        };
        let extensions = 3 + u8::from(self.source.is_some());
        multi_part(&mut bytes, extensions);
        tlv(&mut bytes, TlvType::PACKAGE, bytes_of(&package));
        tlv(&mut bytes, TlvType::VERSION, bytes_of(&version));
        let mut digests = Vec::new();
        for _ in 0..2 {
            digests.push(bytes.len() + 4);
            tlv(&mut bytes, TlvType::SHA256, &[0; 32]);
        }
        if let Some(source) = &self.source {
            tlv(&mut bytes, TlvType::SOURCE, source.as_bytes());
        }
        bytes.extend(&self.extra);
        for (psid, index) in &self.devices {
            multi_part(&mut bytes, 2);
            tlv(&mut bytes, TlvType::DEVICE, &[]);
            tlv(&mut bytes, TlvType::PSID, psid.as_bytes());
            let pointer = ComponentPointer {
                reserved: 0,
                storage: 1,
                index: Be16::new(number("the components", *index as u64)?),
                address: Be32::ZERO,
            };
            tlv(&mut bytes, TlvType::COMPONENT_POINTER, bytes_of(&pointer));
        }
        for (component, offset) in self.components.iter().zip(offsets) {
            multi_part(&mut bytes, 1);
            let descriptor = ComponentDescriptor {
                pldm_classification: Be16::ZERO,
                identifier: Be16::new(1),
                offset_high: high(*offset),
                offset_low: low(*offset),
                size: Be32::new(number("an image", component.len() as u64)?),
            };
            tlv(&mut bytes, TlvType::COMPONENT, bytes_of(&descriptor));
            tlv(&mut bytes, TlvType::VERSION, bytes_of(&tag(component)));
        }
        Ok((bytes, digests))
    }
}

/// The version of an image, as archives have it: the minor cut to its low byte.
fn tag(component: &[u8]) -> VersionTag {
    let mut image = component.to_vec();
    if let (Some(format), Some(magic)) = (
        crate::image::masked_format(component),
        image.first_chunk_mut::<16>(),
    ) {
        *magic = format.magic();
    }
    let info = Image::parse(&image).and_then(|image| image.image_info().copied());
    info.map_or_else(
        |_| VersionTag::default(),
        |info| VersionTag {
            major: info.version().major.to_be_bytes()[1],
            minor: info.version().minor.to_be_bytes()[1],
            subminor: Be16::new(info.version().subminor),
            year: Be16::new(info.date().year),
            month: info.date().month,
            day: info.date().day,
            ..VersionTag::default()
        },
    )
}

fn compress(plain: &[u8]) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| Error::Decompress {
        offset: 0,
        done: 0,
        reason: error.to_string(),
    };
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(PRESET)).map_err(failed)?;
    writer.write_all(plain).map_err(failed)?;
    writer.finish().map_err(failed)
}

fn multi_part(bytes: &mut Vec<u8>, extensions: u8) {
    // Readers go by the number of extensions; the total is not kept by real archives either.
    let value = MultiPart {
        reserved: 0,
        extensions,
        total_length: Be16::ZERO,
    };
    tlv(bytes, TlvType::MULTI_PART, bytes_of(&value));
}

fn tlv(bytes: &mut Vec<u8>, kind: TlvType, value: &[u8]) {
    let header = TlvHeader {
        version: 0,
        kind,
        length: Be16::new(u16::try_from(value.len()).unwrap_or(u16::MAX)),
    };
    bytes.extend(bytes_of(&header));
    bytes.extend(value.iter().take(usize::from(u16::MAX)));
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn number<T: TryFrom<u64>>(what: &'static str, value: u64) -> Result<T> {
    T::try_from(value).map_err(|_| Error::TooLarge {
        what,
        needed: value,
        room: 8_u64.pow(u32::try_from(size_of::<T>()).unwrap_or(1)) - 1,
    })
}

fn high(value: u64) -> Be32 {
    let [a, b, c, d, ..] = value.to_be_bytes();
    Be32::from_bytes([a, b, c, d])
}

fn low(value: u64) -> Be32 {
    let [.., a, b, c, d] = value.to_be_bytes();
    Be32::from_bytes([a, b, c, d])
}
