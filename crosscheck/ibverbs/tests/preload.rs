//! A program that uses the crate ibverbs, unmodified, on the software devices.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rdma_lab::preload::{LIBRARY, Preload, Provider};

const LIMIT: Duration = Duration::from_secs(60);

/// The library, which the workspace beside this one builds.
fn library() -> PathBuf {
    if let Some(path) = std::env::var_os("RVERBS_PRELOAD") {
        return path.into();
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let build = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "-p",
            "rverbs-preload",
            "--message-format=json-render-diagnostics",
        ])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(
        build.status.success(),
        "{}",
        String::from_utf8_lossy(&build.stderr)
    );
    let said = String::from_utf8_lossy(&build.stdout).into_owned();
    let names = said.split('"').filter(|word| word.ends_with(LIBRARY));
    PathBuf::from(names.last().unwrap())
}

#[test]
fn two_processes_exchange_messages() {
    let library = library();
    for (provider, gid, port) in [(Provider::Shm, "-", 7193), (Provider::Roce, "0", 7194)] {
        let lab = Preload::new(library.clone(), provider).limit(LIMIT);
        let program = env!("CARGO_BIN_EXE_ibverbs_pingpong");
        let address = format!("127.0.0.1:{port}");
        let device = provider.device().device();
        let server = lab
            .serve(program, &["server", &address, device, gid], port)
            .unwrap();
        let client = lab
            .start(program, &["client", &address, device, gid])
            .unwrap();
        let client = client.finish(LIMIT, || Ok(())).unwrap();
        let server = server.finish(LIMIT, || Ok(())).unwrap();
        for output in [&client, &server] {
            eprint!("{}{}", output.stdout_text(), output.stderr_text());
            assert_eq!(output.code, 0);
            assert!(output.stdout_text().contains("200 round trips"));
        }
    }
}
