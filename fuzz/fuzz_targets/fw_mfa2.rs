//! Any bytes as an MFA2 archive: parsed, listed, extracted.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mlx_fw::exercise_archive(data));
