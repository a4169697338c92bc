//! Files of tables: read what was written, of ours and of OpenSM, and judged as ibdmchk judges.

#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]

use std::path::{Path, PathBuf};
use std::process::Command;

use ib_sim::topo::{Spec, file};
use ib_sm::routing::quality::{Scope, verify};
use ib_sm::routing::{Fabric, Options, Sl, Sl2Vl, Tables, dump, engine};
use proptest::prelude::*;
use rdma_lab::ibsim::{Ibsim, OpensmOptions};
use rdma_lab::{peer, skip};

fn fabric(spec: &str) -> Fabric {
    Fabric::of_sim(&spec.parse::<Spec>().unwrap().build().unwrap()).unwrap()
}

fn route(name: &str, fabric: &Fabric) -> Tables {
    engine(name)
        .unwrap()
        .route(fabric, &Options::default())
        .unwrap()
}

fn text(write: impl Fn(&mut String) -> std::fmt::Result) -> String {
    let mut text = String::new();
    write(&mut text).unwrap();
    text
}

/// What ibdmchk says of a folder of dumps: whether there are paths missing, and credit loops.
fn ibdmchk(folder: &Path, lanes: bool) -> (bool, bool) {
    let mut command = Command::new(peer("ibdmchk").expect("ibdmchk"));
    command.current_dir(folder).args([
        "-s",
        "opensm-subnet.lst",
        "-f",
        "opensm.fdbs",
        "-m",
        "opensm.mcfdbs",
    ]);
    if lanes {
        command.args(["-c", "path-sl", "-d", "slvl"]);
    }
    let said = command.output().expect("ibdmchk runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let free = said.contains("no credit loops found");
    let loops = said.contains("-E- credit loops in routing");
    assert!(free != loops, "{said}");
    let errors = said.lines().filter(|line| line.starts_with("-E-"));
    let missing = errors.count() > usize::from(loops);
    assert!(missing || said.contains("CA to CA paths"), "{said}");
    (missing, loops)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn what_is_written_is_read_again() {
    let fabric = fabric("fat-tree:108");
    let tables = route("auto", &fabric);
    let subnet = dump::read_subnet(&text(|out| dump::write_subnet(&fabric, out))).unwrap();
    assert_eq!(subnet.ends().len(), 108);
    for written in [
        text(|out| dump::write_fdbs(&fabric, &tables, out)),
        text(|out| dump::write_lfts(&fabric, &tables, out)),
    ] {
        let (read, unfit) = dump::read(&written).unwrap().tables(&fabric);
        assert_eq!(unfit, dump::Unfit::default());
        for switch in 0..9 {
            assert_eq!(read.lft(switch), tables.lft(switch));
        }
        let (again, _) = dump::read(&written).unwrap().tables(&subnet);
        let quality = verify(&subnet, &again, Scope::default());
        assert!(quality.is_sound() && quality.all_to_all.max == 90);
    }
}

#[test]
fn ibdmchk_judges_our_tables_as_we_do() {
    if skip::lacks("ibdmchk_judges_our_tables_as_we_do", &["ibdmchk"]) {
        return;
    }
    for (number, (spec, name, loops)) in [
        ("fat-tree:108", "auto", false),
        ("fat-tree:108", "minhop", false),
        ("torus:5x5", "updn", false),
        ("torus:5x5", "dor", true),
        ("torus:5x5", "auto", false),
        ("dragonfly:p=2", "minhop", true),
        (
            "random:switches=12,hosts=24,degree=4,seed=5",
            "general",
            false,
        ),
        ("random:switches=12,hosts=24,degree=4,seed=6", "nue", false),
    ]
    .into_iter()
    .enumerate()
    {
        let fabric = fabric(spec);
        let tables = route(name, &fabric);
        let quality = verify(&fabric, &tables, Scope::default());
        assert_eq!(
            (quality.lost, quality.credit_loop.is_some()),
            (0, loops),
            "{spec} {name}"
        );
        let folder = folder(&format!("ibdmchk-{number}"));
        let lanes = tables.account.vls > 1;
        for (file, text) in [
            (
                "opensm-subnet.lst",
                text(|out| dump::write_subnet(&fabric, out)),
            ),
            (
                "opensm.fdbs",
                text(|out| dump::write_fdbs(&fabric, &tables, out)),
            ),
            ("opensm.mcfdbs", String::new()),
            ("path-sl", text(|out| dump::path_sl(&fabric, &tables, out))),
            ("slvl", text(|out| dump::slvl(&fabric, &tables, out))),
        ] {
            std::fs::write(folder.join(file), text).unwrap();
        }
        assert_eq!(ibdmchk(&folder, lanes), (false, loops), "{spec} {name}");
    }
}

/// Lanes that are written are read again, and are what makes a torus free of loops.
#[test]
fn lanes_are_read_again() {
    for spec in ["torus:5x5", "dragonfly:p=2"] {
        let fabric = fabric(spec);
        let tables = route("auto", &fabric);
        let mut read = tables.clone();
        (read.sl, read.sl2vl) = (Sl::Zero, Sl2Vl::zero());
        let alone = verify(&fabric, &read, Scope::default());
        assert!(alone.credit_loop.is_some() && alone.vls == 1, "{spec}");
        read.sl =
            dump::read_path_sl(&fabric, &text(|out| dump::path_sl(&fabric, &tables, out))).unwrap();
        read.sl2vl =
            dump::read_slvl(&fabric, &text(|out| dump::slvl(&fabric, &tables, out))).unwrap();
        assert_eq!(
            verify(&fabric, &read, Scope::default()),
            verify(&fabric, &tables, Scope::default()),
            "{spec}"
        );
    }
    let fabric = fabric("switch:hosts=2");
    assert_eq!(dump::read_path_sl(&fabric, "0x1 1 16").unwrap_err().line, 1);
    assert_eq!(
        dump::read_slvl(&fabric, "\n0x1 1 1 0x01").unwrap_err().line,
        2
    );
}

#[test]
fn tables_of_opensm_are_read_and_judged() {
    let test = "tables_of_opensm_are_read_and_judged";
    if skip::lacks_ibsim(test) || skip::lacks(test, &["ibdmchk"]) {
        return;
    }
    // Most over mean as fabric, engine and OpenSM 3.3.23 have it.
    for (spec, name, max, loops) in [
        ("fat-tree:108", "minhop", 90, false),
        ("fat-tree:108", "ftree", 90, false),
        ("dragonfly:p=2", "minhop", 126, true),
    ] {
        let topology = spec.parse::<Spec>().unwrap().build().unwrap();
        let sim = Ibsim::start(&file::write(&topology), &Default::default()).unwrap();
        let options = OpensmOptions {
            args: ["-D", "0x43", "-R", name].map(str::to_owned).to_vec(),
            ..OpensmOptions::default()
        };
        let sm = sim.opensm(&options).unwrap();
        let read = |file: &str| std::fs::read_to_string(sm.folder().join(file)).unwrap();
        let fabric = dump::read_subnet(&read("opensm-subnet.lst")).unwrap();
        assert_eq!(fabric.ends().len(), topology.hosts().count());
        let of = |file: &str| {
            let (tables, unfit) = dump::read(&read(file)).unwrap().tables(&fabric);
            assert_eq!(unfit, dump::Unfit::default());
            let quality = verify(&fabric, &tables, Scope::default());
            (
                quality.lost,
                quality.all_to_all.max,
                quality.credit_loop.is_some(),
            )
        };
        assert_eq!(of("opensm.fdbs"), (0, max, loops), "{spec} {name}");
        assert_eq!(of("opensm-lfts.dump"), (0, max, loops), "{spec} {name}");
        assert_eq!(ibdmchk(sm.folder(), false), (false, loops), "{spec} {name}");
        if name == "minhop" {
            let (theirs, _) = dump::read(&read("opensm-lfts.dump"))
                .unwrap()
                .tables(&fabric);
            let ours = route(name, &fabric);
            let switches = 0..u32::try_from(fabric.switches().len()).unwrap();
            let differing: usize = switches
                .map(|it| {
                    theirs
                        .lft(it)
                        .iter()
                        .zip(ours.lft(it))
                        .filter(|(a, b)| a != b)
                        .count()
                })
                .sum();
            // OpenSM deals switches with as many hosts out in an order of qsort's, which is that of
            // their GUIDs in this fabric and not in a bigger one.
            if spec == "fat-tree:108" {
                assert_eq!(differing, 0, "{spec}");
            }
        }
    }
}

/// The seeds of the fuzz target `lft_dump`, replayed without a fuzzer.
#[test]
fn seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/lft_dump");
    let mut entries = 0;
    for seed in std::fs::read_dir(folder).expect("the corpus") {
        let bytes = std::fs::read(seed.expect("a seed").path()).expect("a seed");
        let text = String::from_utf8_lossy(&bytes);
        entries += dump::read(&text).map_or(0, |it| it.len());
        let _ = dump::read_subnet(&text);
    }
    assert!(entries > 0);
}

proptest! {
    #[test]
    fn any_text(text in "(\\PC|\n|dump_ucast_routes: Switch 0x|0x00|Unicast lids |\\{ CA |NodeGUID:){0,40}") {
        let _ = dump::read(&text);
        let _ = dump::read_subnet(&text);
    }
}
