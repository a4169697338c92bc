//! MFA2: descriptors, then one xz block with the images of all boards.
//!
//! The descriptors say which board (PSID) takes which image. Their versions are not to be
//! trusted (the minor is cut to 8 bits, dates are garbage in older archives), so that the truth is
//! read from the image itself.
//!
//! Everything that an archive says about sizes is a claim: the block is decompressed as a stream,
//! one image is held at a time, and [`Limits`] bound both.

mod build;
mod tlv;
mod unpack;

use rdma_wire::Reader;
use sha2::{Digest, Sha256};

pub use build::Builder;
pub use tlv::{
    ComponentDescriptor, ComponentPointer, MultiPart, PackageDescriptor, Tlv, TlvHeader, TlvType,
    VersionTag,
};
pub use unpack::Limits;

use crate::image::image_info::text;
use crate::image::{self, Container, Image};
use crate::report::{DeviceReport, DigestReport, DigestState, ListReport, QueryReport};
use crate::{Error, Psid, Result};

/// What an archive starts with.
pub const FINGERPRINT: [u8; 16] = *b"MLNX.MFA2.XZ.00!";
/// What each image in the block starts with, not counted in its size.
pub const MARKER: [u8; 16] = *b"#BIN.COMPONENT!#";
/// How many pairs of a board and an image are read at most, some hundred times what archives have.
const MAX_POINTERS: usize = 0xffff;
/// The only compression there is.
const XZ: u8 = 1;

/// A board that the archive has an image for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The board.
    pub psid: Psid,
    /// Its images, as numbers of components; nearly always one.
    pub components: Vec<usize>,
}

/// An image in the block, as its descriptor says.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// 1 for firmware.
    pub identifier: u16,
    /// Where its marker stands in the unpacked block.
    pub offset: u64,
    /// How long it is, without the marker.
    pub size: u64,
    /// Its version, as far as it goes.
    pub tag: VersionTag,
}

/// An MFA2 archive, its descriptors read.
#[derive(Clone, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    package: PackageDescriptor,
    version: VersionTag,
    source: Option<String>,
    digests: Vec<(u64, [u8; 32])>,
    devices: Vec<Device>,
    components: Vec<Component>,
    block_offset: u64,
    block: &'a [u8],
}

impl<'a> Archive<'a> {
    /// Reads the descriptors. Nothing is decompressed, and no digest is checked.
    ///
    /// TLVs of types that are not known are passed over.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for what is no MFA2 archive, [`Error::Decode`] where a descriptor is
    /// cut short or can't be, [`Error::Count`] where there are more or fewer than announced, and
    /// [`Error::NoComponent`] where a device points to none.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        match image::detect(bytes) {
            Container::Mfa2
                if bytes.starts_with(&FINGERPRINT) || bytes.len() < FINGERPRINT.len() => {}
            found => {
                return Err(Error::WrongKind {
                    wanted: "an MFA2 archive",
                    found,
                });
            }
        }
        let mut reader = Reader::new(bytes);
        reader.skip("fingerprint", FINGERPRINT.len())?;

        let mut package: Option<PackageDescriptor> = None;
        let mut version = VersionTag::default();
        let mut source = None;
        let mut digests = Vec::new();
        let mut devices = Vec::new();
        let mut components = Vec::new();
        let mut pointers = 0;
        // The package descriptor comes first and says where the descriptors end.
        while package.is_none_or(|package| reader.offset() < package.block_offset.get().into()) {
            let group = group(&mut reader)?;
            let Some(head) = group.first() else { continue };
            match head.kind {
                TlvType::PACKAGE if package.is_none() => {
                    package = Some(*head.get("package descriptor")?);
                    for tlv in &group {
                        match tlv.kind {
                            TlvType::VERSION => version = *tlv.get("package version")?,
                            TlvType::SHA256 => digests.push((tlv.offset, *tlv.get("SHA-256")?)),
                            TlvType::SOURCE => source = Some(text(tlv.value)),
                            _ => {}
                        }
                    }
                }
                TlvType::DEVICE => {
                    let device = device(&group)?;
                    pointers += device.components.len();
                    if pointers > MAX_POINTERS {
                        return Err(Error::Limit {
                            what: "the list of boards and their images",
                            size: pointers as u64,
                            limit: MAX_POINTERS as u64,
                        });
                    }
                    devices.push(device);
                }
                TlvType::COMPONENT => components.push(component(&group)?),
                // Not known, or not needed.
                _ => {}
            }
        }
        let Some(package) = package else {
            return Err(
                rdma_wire::DecodeError::truncated("package descriptor", 16, 0x1c, 0).into(),
            );
        };

        for (what, announced, found) in [
            ("devices", package.devices.get(), devices.len()),
            ("components", package.components.get(), components.len()),
        ] {
            if usize::from(announced) != found {
                return Err(Error::Count {
                    what,
                    announced,
                    found,
                });
            }
        }
        for device in &devices {
            if let Some(&index) = device
                .components
                .iter()
                .find(|index| **index >= components.len())
            {
                return Err(Error::NoComponent {
                    psid: device.psid,
                    index,
                    count: components.len(),
                });
            }
        }
        if package.compression != XZ {
            return Err(rdma_wire::DecodeError::invalid(
                "compression",
                0x18 + 4 + 0x14,
                package.compression.into(),
                "1 for xz",
            )
            .into());
        }
        let block_offset = u64::from(package.block_offset.get());
        let block = rdma_wire::slice(
            "compressed block",
            bytes,
            usize::try_from(block_offset).unwrap_or(usize::MAX),
            usize::try_from(package.block_size.get()).unwrap_or(usize::MAX),
        )?;
        Ok(Self {
            bytes,
            package,
            version,
            source,
            digests,
            devices,
            components,
            block_offset,
            block,
        })
    }

    /// The package descriptor as it stands.
    #[must_use]
    pub const fn package(&self) -> &PackageDescriptor {
        &self.package
    }

    /// The version of the package, and when it was made.
    #[must_use]
    pub const fn version(&self) -> &VersionTag {
        &self.version
    }

    /// The boards, in the archive's order.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The images, as their descriptors say.
    #[must_use]
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Checks both digests, over the bytes of the file; nothing is decompressed.
    #[must_use]
    pub fn digests(&self) -> DigestReport {
        let end = usize::try_from(self.block_offset).unwrap_or(usize::MAX);
        let mut descriptors = self.bytes.get(..end).unwrap_or_default().to_vec();
        // The digests are over descriptors that have zeros in their place.
        for (offset, digest) in self.digests.iter().take(2) {
            let start = usize::try_from(*offset).unwrap_or(usize::MAX);
            if let Some(place) = descriptors.get_mut(start..start.saturating_add(digest.len())) {
                place.fill(0);
            }
        }
        let over_descriptors = Sha256::new_with_prefix(&descriptors);
        let over_all = over_descriptors.clone().chain_update(self.block);
        let state = |index: usize, computed: Sha256| match self.digests.get(index) {
            None => DigestState::Absent,
            Some((_, digest)) if computed.finalize()[..] == digest[..] => DigestState::Ok,
            Some(_) => DigestState::Wrong,
        };
        DigestReport {
            all: state(0, over_all),
            descriptors: state(1, over_descriptors),
        }
    }

    /// Refuses an archive with a wrong digest.
    fn check_digests(&self) -> Result<()> {
        let digests = self.digests();
        for (what, state) in [
            ("its descriptors", digests.descriptors),
            ("its contents", digests.all),
        ] {
            if state == DigestState::Wrong {
                return Err(Error::Digest { what });
            }
        }
        Ok(())
    }

    /// The board with a PSID.
    ///
    /// # Errors
    /// [`Error::NoPsid`], with the PSIDs that look most like it.
    pub fn device(&self, psid: Psid) -> Result<&Device> {
        self.devices
            .iter()
            .find(|device| device.psid == psid)
            .ok_or_else(|| {
                let mut near: Vec<Psid> = self.devices.iter().map(|device| device.psid).collect();
                near.sort_by_key(|other| (psid.distance(*other), *other));
                near.dedup();
                near.truncate(3);
                Error::NoPsid { psid, near }
            })
    }

    /// Takes out the image of a board, its magic put back: what can be written as a `.bin`.
    ///
    /// # Errors
    /// [`Error::NoPsid`], [`Error::Digest`] where the archive is corrupt, and
    /// [`Error::Decompress`], [`Error::Component`], [`Error::Limit`] where the block is not as it
    /// says.
    pub fn extract(&self, psid: Psid, limits: &Limits) -> Result<Vec<u8>> {
        let device = self.device(psid)?;
        let index = *device.components.first().ok_or(Error::NoComponent {
            psid,
            index: 0,
            count: 0,
        })?;
        self.check_digests()?;
        let mut taken = None;
        unpack::visit(self, limits, &[index], |_, bytes| {
            taken = Some(bytes);
            Ok(())
        })?;
        taken.ok_or(Error::NoComponent {
            psid,
            index,
            count: self.components.len(),
        })
    }

    /// Takes out every image, one at a time, each with its number, in the order of the block.
    ///
    /// # Errors
    /// As for [`Archive::extract`], and what `each` returns.
    pub fn extract_all(
        &self,
        limits: &Limits,
        each: impl FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        self.check_digests()?;
        let all: Vec<usize> = (0..self.components.len()).collect();
        unpack::visit(self, limits, &all, each).map(drop)
    }

    /// What is in the archive. Every image is unpacked and asked who it is; one that can't be
    /// read is listed with its problem.
    ///
    /// # Errors
    /// [`Error::Decompress`], [`Error::Component`], [`Error::Limit`] where the block is not as it
    /// says. A wrong digest is no error here, it is reported.
    pub fn list(&self, limits: &Limits) -> Result<ListReport> {
        let mut answers: Vec<Option<Result<QueryReport>>> = vec![None; self.components.len()];
        let all: Vec<usize> = (0..self.components.len()).collect();
        let unpacked_size = unpack::visit(self, limits, &all, |index, bytes| {
            let answer = Image::parse(&bytes).and_then(|image| crate::query(&image, false));
            if let Some(place) = answers.get_mut(index) {
                *place = Some(answer);
            }
            Ok(())
        })?;
        let mut devices = Vec::new();
        for device in &self.devices {
            for &component in &device.components {
                let descriptor = self.components.get(component);
                let (info, problem) = match answers.get(component).and_then(Option::as_ref) {
                    Some(Ok(info)) => (Some(info), None),
                    Some(Err(error)) => (None, Some(error.to_string())),
                    None => (None, Some("not unpacked".to_owned())),
                };
                let other = info.filter(|info| info.psid != device.psid.to_string());
                let field = |get: fn(&QueryReport) -> Option<String>| info.and_then(get);
                devices.push(DeviceReport {
                    psid: device.psid.to_string(),
                    component,
                    size: descriptor.map_or(0, |descriptor| descriptor.size),
                    tag: descriptor.map_or_else(String::new, |descriptor| descriptor.tag.version()),
                    fw_version: field(|info| Some(info.fw_version.clone())),
                    release_date: field(|info| info.release_date.clone()),
                    format: field(|info| Some(info.format.clone())),
                    part_number: field(|info| info.part_number.clone()),
                    description: field(|info| info.description.clone()),
                    problem: problem.or_else(|| {
                        other.map(|info| format!("the image is for PSID {}", info.psid))
                    }),
                });
            }
        }
        Ok(ListReport {
            format: "MFA2".to_owned(),
            package_version: self.version.version(),
            created: self.version.timestamp(),
            source: self.source.clone(),
            file_size: self.bytes.len() as u64,
            components: self.components.len(),
            unpacked_size,
            digests: self.digests(),
            devices,
        })
    }
}

impl VersionTag {
    /// The version, as far as it goes.
    #[must_use]
    pub fn version(&self) -> String {
        format!("{}.{}.{}", self.major, self.minor, self.subminor)
    }

    /// Date and time of a package. Its fields are decimal, and its month counts from 0 as C's
    /// `tm_mon` does: mstarchive prints one more, which then agrees with the components' own dates.
    #[must_use]
    pub fn timestamp(&self) -> String {
        format!(
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
            self.year,
            u16::from(self.month) + 1,
            self.day,
            self.hour,
            self.minutes,
            self.seconds
        )
    }
}

/// Reads a TLV, and those that it groups.
fn group<'a>(reader: &mut Reader<'a>) -> Result<Vec<Tlv<'a>>> {
    let tlv = Tlv::read(reader)?;
    if tlv.kind != TlvType::MULTI_PART {
        return Ok(vec![tlv]);
    }
    let multi: &MultiPart = tlv.get("multi-part")?;
    let mut group = Vec::new();
    for _ in 0..=multi.extensions {
        group.push(Tlv::read(reader)?);
    }
    Ok(group)
}

fn device(group: &[Tlv<'_>]) -> Result<Device> {
    let mut psid = Psid::default();
    let mut components = Vec::new();
    for tlv in group {
        match tlv.kind {
            TlvType::PSID => psid = Psid::from_prefix(tlv.value),
            TlvType::COMPONENT_POINTER => {
                let pointer: &ComponentPointer = tlv.get("component pointer")?;
                components.push(pointer.index.get().into());
            }
            _ => {}
        }
    }
    Ok(Device { psid, components })
}

fn component(group: &[Tlv<'_>]) -> Result<Component> {
    let mut tag = VersionTag::default();
    let mut descriptor: Option<&ComponentDescriptor> = None;
    for tlv in group {
        match tlv.kind {
            TlvType::COMPONENT => descriptor = Some(tlv.get("component descriptor")?),
            TlvType::VERSION => tag = *tlv.get("component version")?,
            _ => {}
        }
    }
    let Some(descriptor) = descriptor else {
        // The caller saw one as the first of the group.
        return Err(rdma_wire::DecodeError::truncated("component descriptor", 0, 0x10, 0).into());
    };
    Ok(Component {
        identifier: descriptor.identifier.get(),
        offset: u64::from(descriptor.offset_high.get()) << 32
            | u64::from(descriptor.offset_low.get()),
        size: descriptor.size.get().into(),
        tag,
    })
}
