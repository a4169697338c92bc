//! Every function of libibverbs and librdmacm that Debian's programs need is defined here, so that
//! no function of the real libraries gets hold of one of our objects.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use rdma_lab::preload;
use rdma_lab::skip;

/// The library's dynamic symbols, or what a program needs of others.
fn symbols(file: &Path, defined: bool) -> BTreeSet<String> {
    let which = if defined {
        "--defined-only"
    } else {
        "--undefined-only"
    };
    let output = Command::new("nm")
        .args(["-D", "--format=posix", which])
        .arg(file)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split([' ', '@']).next())
        .filter(|name| {
            ["ibv_", "_ibv_", "rdma_", "mlx5dv_", "efadv_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn what_programs_need_is_there() {
    let test = "what_programs_need_is_there";
    let programs: BTreeSet<_> = preload::cases().flat_map(|case| case.programs()).collect();
    let programs: Vec<_> = programs.into_iter().chain(["nm"]).collect();
    if skip::lacks(test, &programs) {
        return;
    }
    let ours = symbols(&preload::library().unwrap(), true);
    let mut needed = 0;
    for program in programs.iter().filter(|program| **program != "nm") {
        let path = rdma_lab::peer::need(program).unwrap();
        let missing: Vec<_> = symbols(&path, false)
            .into_iter()
            .inspect(|_| needed += 1)
            .filter(|name| !ours.contains(name))
            .collect();
        assert!(missing.is_empty(), "{program} needs {missing:?}");
    }
    assert!(
        needed > 200,
        "only {needed} symbols were found in all programs"
    );
}

#[test]
fn every_public_function_of_the_c_libraries_is_there() {
    let test = "every_public_function_of_the_c_libraries_is_there";
    if skip::lacks(test, &["nm"]) {
        return;
    }
    let ours = symbols(&preload::library().unwrap(), true);
    let libraries = ["libibverbs.so.1", "librdmacm.so.1"];
    let folder = Path::new("/usr/lib/x86_64-linux-gnu");
    for library in libraries.map(|name| folder.join(name)) {
        if !library.exists() {
            skip::peer_missing(test, &format!("no {}", library.display()));
            continue;
        }
        let missing: Vec<_> = symbols(&library, true)
            .into_iter()
            // Providers of the real library are no programs: they have an interface of their own.
            .filter(|name| !name.starts_with("ibv_cmd_") && !name.starts_with("ibv_copy_"))
            .filter(|name| !ours.contains(name))
            .collect();
        let private = ["ibv_read_ibdev_sysfs_file", "ibv_register_driver"];
        let missing: Vec<_> = missing
            .iter()
            .filter(|name| !private.contains(&name.as_str()))
            .collect();
        assert!(missing.is_empty(), "{}: {missing:?}", library.display());
    }
}
