//! What does an image say about itself?

use crate::image::dev_info::{UidEntry, Uids};
use crate::image::hw_id::HwId;
use crate::image::image_info::text;
use crate::image::signature::SignatureHead;
use crate::image::{Check, Image, SectionType, crc, rom};
use crate::report::{
    Hardware, QueryReport, RomReport, SectionReport, Security, UidRange, UidReport,
};
use crate::{Psid, Result};

/// Reads what an image says about itself. With `full`, its sections are listed too.
///
/// Only the sections that the answer needs are read. Where the CRC of one of them is wrong, the
/// answer is given all the same, with a warning.
///
/// ```
/// use mlx_fw::image::{Image, build::Builder};
/// let bytes = Builder::fs4().psid("MT_0000000013").build()?;
/// let report = mlx_fw::query(&Image::parse(&bytes)?, false)?;
/// assert_eq!(report.psid, "MT_0000000013");
/// # Ok::<(), mlx_fw::Error>(())
/// ```
///
/// # Errors
/// As for [`Image::image_info`], [`Image::dev_info`] and [`Image::mfg_info`].
pub fn query(image: &Image<'_>, full: bool) -> Result<QueryReport> {
    let info = image.image_info()?;
    let device = image.dev_info()?;
    let made = image.mfg_info()?;

    let chip = info.hardware().next().map(|(id, _)| HwId::new(id));
    let extended = chip.is_some_and(HwId::has_extended_guids);
    let (uids, uid_form) = device.map_or((Vec::new(), None), |device| {
        let read = |block: &crate::image::dev_info::UidBlock, base: bool| {
            if base { block.base() } else { block.per_port() }
        };
        let base = extended || device.major_version == 2;
        let current = read(&device.uids, base);
        let original = made.map(|made| read(&made.uids, base));
        let form = if base { "base" } else { "per_port" };
        (
            uid_reports(&current, original.as_ref()),
            Some(form.to_owned()),
        )
    });

    let version = info.version();
    let vsd = text(&info.vsd);
    let branch = (chip.is_some_and(HwId::is_switch) && is_branch(&vsd)).then(|| vsd.clone());
    let (mic_major, mic_minor, mic_sub) = info.mic_version();
    let mic = (mic_major, mic_minor, mic_sub) != (0, 0, 0);
    let names = info.has_names();
    let name = |field: &[u8]| names.then(|| text(field)).filter(|text| !text.is_empty());
    let issu = info.mad.major();
    let pci = info.pci_device_id.get() != 0;

    Ok(QueryReport {
        format: image.format().to_string(),
        complete: image.is_complete(),
        encrypted: image.layout().encrypted,
        start: image.start(),
        file_size: image.len(),
        image_size: image.layout().end.saturating_sub(image.start()),
        psid: info.psid().to_string(),
        orig_psid: made
            .map(|made| made.psid())
            .filter(|psid| !psid.is_empty())
            .as_ref()
            .map(Psid::to_string),
        fw_version: version.to_string(),
        branch,
        issu_version: (issu != 0).then_some(issu),
        release_date: info.date().is_set().then(|| info.date().to_string()),
        product_version: Some(text(&info.product_version)).filter(|text| !text.is_empty()),
        mic_version: mic.then(|| format!("{mic_major}.{mic_minor}.{mic_sub}")),
        part_number: name(&info.name),
        description: name(&info.description),
        prs_name: name(&info.prs_name),
        orig_prs_name: made
            .filter(|made| made.minor_version == 1)
            .map(|made| text(&made.prs_name))
            .filter(|text| !text.is_empty()),
        hardware: info
            .hardware()
            .map(|(id, revision)| Hardware {
                id,
                revision,
                name: HwId::new(id).name().map(str::to_owned),
            })
            .collect(),
        pci_id: pci.then(|| format!("{:04x}:{:04x}", info.pci_vendor_id, info.pci_device_id)),
        roms: roms(image)?,
        uids,
        uid_form,
        image_vsd: Some(vsd).filter(|vsd| !vsd.is_empty()),
        device_vsd: device
            .map(|device| text(&device.vsd))
            .filter(|vsd| !vsd.is_empty()),
        vsd_vendor_id: info.vsd_vendor_id.get(),
        security: security(image)?,
        sections: full.then(|| sections(image)),
        warnings: warnings(image),
    })
}

/// Whether the VSD of a switch names a branch: it ends in `_` or `-` and digits.
fn is_branch(vsd: &str) -> bool {
    let bytes = vsd.as_bytes();
    let digits = |tail: &[u8]| tail.iter().all(u8::is_ascii_digit);
    (5..=28).contains(&bytes.len())
        && bytes.last_chunk::<5>().is_some_and(|[first, tail @ ..]| {
            let [second, rest @ ..] = tail;
            match (first, second) {
                (b'_', _) => digits(tail),
                (_, b'-') => digits(rest),
                _ => false,
            }
        })
}

fn uid_reports(current: &Uids, original: Option<&Uids>) -> Vec<UidReport> {
    let pairs = match current {
        Uids::Base { guid, mac } => {
            let (guid0, mac0) = match original {
                Some(Uids::Base { guid, mac }) => (Some(guid), Some(mac)),
                _ => (None, None),
            };
            vec![
                ("guid", guid, guid0, false, 16),
                ("mac", mac, mac0, false, 12),
            ]
        }
        Uids::PerPort { guids, macs } => {
            let (guids0, macs0) = match original {
                Some(Uids::PerPort { guids, macs }) => {
                    (guids.each_ref().map(Some), macs.each_ref().map(Some))
                }
                _ => ([None; 2], [None; 2]),
            };
            let ([guid1, guid2], [mac1, mac2]) = (guids, macs);
            let ([guid10, guid20], [mac10, mac20]) = (guids0, macs0);
            vec![
                ("guid1", guid1, guid10, true, 16),
                ("guid2", guid2, guid20, true, 16),
                ("mac1", mac1, mac10, true, 12),
                ("mac2", mac2, mac20, true, 12),
            ]
        }
    };
    pairs
        .into_iter()
        .map(|(name, current, original, per_port, digits)| UidReport {
            name: name.to_owned(),
            current: range(current, per_port, digits),
            original: original
                .map(|original| range(original, per_port, digits))
                .filter(|original| {
                    let mut current = range(current, per_port, digits);
                    if !per_port {
                        // The step says nothing where one base is for all ports.
                        current.step = original.step;
                    }
                    *original != current
                }),
        })
        .collect()
}

fn range(entry: &UidEntry, per_port: bool, digits: usize) -> UidRange {
    let uid = entry.uid.get();
    UidRange {
        first: (uid != 0).then(|| format!("0x{uid:0digits$x}")),
        count: if per_port {
            entry.num_allocated.into()
        } else {
            entry.count()
        },
        step: entry.step,
    }
}

fn roms(image: &Image<'_>) -> Result<Option<Vec<RomReport>>> {
    let Some(section) = image.find(SectionType::ROM_CODE) else {
        return Ok(None);
    };
    let reports = rom::roms(image.data(section)?)
        .iter()
        .map(|rom| {
            let (a, b, c) = rom.version;
            let newer = rom.product >= 0x10;
            RomReport {
                kind: rom.product_name().map(str::to_owned),
                product_id: rom.product,
                version: if rom.product == 0xf {
                    a.to_string()
                } else {
                    format!("{a}.{b}.{c}")
                },
                cpu: rom.cpu_name().map(str::to_owned),
                port: (rom.port != 0).then_some(rom.port),
                protocol: rom
                    .protocol_name()
                    .filter(|_| newer && rom.product != 0x12)
                    .map(str::to_owned),
                device_id: (rom.device_id != 0).then_some(rom.device_id),
                text: rom.to_string(),
            }
        })
        .collect();
    Ok(Some(reports))
}

fn security(image: &Image<'_>) -> Result<Security> {
    let flags = image.image_info()?.flags;
    let find = |kinds: &[SectionType]| {
        image
            .sections()
            .find(|section| kinds.contains(&section.kind))
    };
    let signature = find(&[
        SectionType::IMAGE_SIGNATURE_256,
        SectionType::IMAGE_SIGNATURE_512,
    ]);
    let public_keys = find(&[SectionType::PUBLIC_KEYS_2048, SectionType::PUBLIC_KEYS_4096]);

    // Without a signature, keys or the firmware's own update nothing is enforced.
    let enforced = signature.is_some() && public_keys.is_some() && flags.mcc_en();
    let encrypted = image.layout().encrypted;
    let mut attributes = Vec::new();
    if enforced || encrypted {
        let development = image
            .sections()
            .filter(|section| {
                matches!(
                    section.kind,
                    SectionType::IMAGE_SIGNATURE_256 | SectionType::IMAGE_SIGNATURE_512
                )
            })
            .filter_map(|section| image.data(section).ok())
            .filter_map(|data| rdma_wire::prefix::<SignatureHead>("signature", data).ok())
            .any(|(head, _)| head.is_development());
        let strong = if flags.secure_fw() {
            Some("secure-fw")
        } else if flags.signed_fw() {
            Some("signed-fw")
        } else {
            None
        };
        if let Some(strong) = strong {
            attributes.push(strong.to_owned());
            for (set, name) in [(flags.debug_fw(), "debug"), (development, "dev")] {
                if set {
                    attributes.push(name.to_owned());
                }
            }
        }
    }
    Ok(Security {
        attributes,
        version: image
            .layout()
            .hw_pointers
            .map(|pointers| pointers.fw_security_version.value()),
        signature: signature.is_some(),
        public_keys: public_keys.is_some(),
        firmware_controlled_update: (enforced || encrypted) && flags.mcc_en(),
        secure_boot: flags.secure_boot(),
    })
}

fn sections(image: &Image<'_>) -> Vec<SectionReport> {
    image
        .sections()
        .map(|section| SectionReport {
            name: section.kind.flint(),
            section_type: section.kind.get(),
            offset: section.offset,
            size: section.size,
            device_data: section.device_data,
        })
        .collect()
}

/// Warns of wrong CRCs of what the answer stands on.
fn warnings(image: &Image<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for section in image.sections() {
        if matches!(
            section.kind,
            SectionType::IMAGE_INFO | SectionType::MFG_INFO | SectionType::DEV_INFO
        ) && let Check::Entry(stored) = section.check
            && let Ok(data) = image.data(section)
        {
            let spare = section.kind == SectionType::DEV_INFO
                && image.format() == crate::image::Format::Fs4
                && !data.starts_with(&crate::image::dev_info::SIGNATURE);
            let computed = crc::sw(data);
            if computed != stored && !spare {
                warnings.push(format!(
                    "{} at offset {:#x} has a wrong CRC (computed {computed:#06x}, stored \
                     {stored:#06x}): what it says may be wrong",
                    section.kind.flint(),
                    section.offset
                ));
            }
        }
    }
    if image.starts().len() > 1 {
        let others: Vec<String> = image
            .starts()
            .iter()
            .skip(1)
            .map(|start| format!("{start:#x}"))
            .collect();
        warnings.push(format!(
            "more than one image is in the file: this is the one at {:#x}, others start at {}",
            image.start(),
            others.join(", ")
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::is_branch;

    #[test]
    fn a_branch_ends_in_digits() {
        for (vsd, branch) in [
            ("feature_1234", true),
            ("feature-123", true),
            ("a-123", true),
            ("_1234", true),
            ("feature_123x", false),
            ("feature1234", false),
            ("1234", false),
            ("a_very_long_name_of_a_branch_1234", false),
            ("", false),
        ] {
            assert_eq!(is_branch(vsd), branch, "{vsd}");
        }
    }
}
