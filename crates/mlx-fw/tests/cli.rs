//! The commands as a person types them. The fixtures are made when the test runs.
#![expect(clippy::disallowed_methods, reason = "a test writes its fixtures")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[path = "it/sample.rs"]
mod sample;

fn fixtures(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    for (name, builder) in sample::complete().into_iter().chain(sample::reduced()) {
        if [
            "fs4-moved",
            "fs4-signed",
            "fs3-connect-ib",
            "fs4-reduced",
            "fs3-reduced",
        ]
        .contains(&name)
        {
            write(&format!("{name}.bin"), &builder.build().unwrap());
        }
    }
    let mut broken = sample::reduced()[0].1.build().unwrap();
    broken[0x3333] ^= 1;
    write("broken.bin", &broken);
    write("short.bin", &broken[..0x4000]);
    write("stub.bin", &broken[..0x20]);
    write("empty.bin", &[]);
    write("blank.bin", &[0xff; 4096]);
    write("text.bin", b"not firmware\n");
    let archive = sample::archive().build().unwrap();
    write("cards.mfa2", &archive);
    let mut changed = archive.clone();
    let last = changed.len() - 200;
    changed[last] ^= 1;
    write("changed.mfa2", &changed);
    write("short.mfa2", &archive[..archive.len() - 5]);
    write("there.bin", b"something precious\n");
    fs::create_dir(folder.join("folder")).unwrap();
    // Sparse: 10 GiB of nothing.
    let huge = fs::File::create(folder.join("huge.bin")).unwrap();
    huge.set_len(10 << 30).unwrap();
    write("secret.bin", b"?");
    fs::set_permissions(folder.join("secret.bin"), fs::Permissions::from_mode(0o000)).unwrap();
}

#[test]
fn commands() {
    let folder = tempfile::tempdir().unwrap();
    fixtures(folder.path());
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cmd");
    std::env::set_current_dir(folder.path()).unwrap();
    let tests = trycmd::TestCases::new();
    tests.default_bin_name("mlx-fw");
    tests.case(cases.join("*.trycmd"));
    // The superuser reads what it may not.
    if fs::read(folder.path().join("secret.bin")).is_ok() {
        tests.skip(cases.join("denied.trycmd"));
    }
}
