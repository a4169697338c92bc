//! Any bytes as a firmware image: parsed, verified, queried, summed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mlx_fw::exercise_image(data));
