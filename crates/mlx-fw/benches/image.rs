//! How long images and archives take. `cargo bench -p mlx-fw`.
#![expect(clippy::unwrap_used, reason = "a bench fails by panicking")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mlx_fw::archive::mfa2::{self, Archive, Limits};
use mlx_fw::image::build::{Builder, filler};
use mlx_fw::image::{Image, SectionType, crc};
use mlx_fw::{Psid, query, verify};

/// The length of MAIN_CODE: that of a real Spectrum-2.
const MAIN: usize = 0x41_1b00;

fn image() -> Builder {
    Builder::fs4()
        .psid("MT_0000000217")
        .section(SectionType::MAIN_CODE, filler(42, MAIN))
}

fn images(c: &mut Criterion) {
    let reduced = image().build().unwrap();
    let flash = image().flash(1 << 25).build().unwrap();
    c.bench_function("image/parse+query of 32 MiB", |b| {
        b.iter(|| query(&Image::parse(black_box(&flash)).unwrap(), false).unwrap());
    });

    let mut group = c.benchmark_group("image");
    group.throughput(Throughput::Bytes(reduced.len() as u64));
    group.bench_function("verify", |b| {
        b.iter(|| {
            let report = verify(&Image::parse(black_box(&reduced)).unwrap());
            assert!(report.ok);
        });
    });
    group.finish();

    let mut group = c.benchmark_group("crc");
    let bytes = filler(7, 1 << 20);
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("sw", |b| b.iter(|| crc::sw(black_box(&bytes))));
    group.finish();
}

fn archives(c: &mut Criterion) {
    let mut builder = mfa2::Builder::new();
    for board in 0..8 {
        let psid = format!("MT_{board:010}");
        builder = builder.image(&psid, image().psid(&psid).component().unwrap());
    }
    let bytes = builder.build().unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let unpacked = archive.list(&Limits::default()).unwrap().unpacked_size;

    let mut group = c.benchmark_group("mfa2");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(unpacked));
    group.bench_function("list of 8 images", |b| {
        b.iter(|| archive.list(&Limits::default()).unwrap());
    });
    group.throughput(Throughput::Elements(1));
    let first = Psid::new("MT_0000000000").unwrap();
    group.bench_function("extract the first", |b| {
        b.iter(|| archive.extract(first, &Limits::default()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, images, archives);
criterion_main!(benches);
