//! The steps, as data.

use crate::workspace::Workspace;

use super::execute::Invocation;

/// One step of the check.
pub struct Step {
    /// Its name, for `--skip`, `--only` and the log file.
    pub name: &'static str,
    /// What it makes sure of.
    pub what: &'static str,
    /// Whether `--quick` runs it.
    pub quick: bool,
    /// Whether its commands are test runs, to be counted.
    pub tests: bool,
    /// What it runs, in order.
    pub commands: Vec<Invocation>,
}

fn step(name: &'static str, what: &'static str, commands: Vec<Invocation>) -> Step {
    Step {
        name,
        what,
        quick: false,
        tests: false,
        commands,
    }
}

impl Step {
    fn quick(self) -> Self {
        Self {
            quick: true,
            ..self
        }
    }

    fn tests(self) -> Self {
        Self {
            tests: true,
            ..self
        }
    }
}

const CROSSCHECK: &str = "crosscheck/Cargo.toml";
const IBVERBS: &str = "crosscheck/ibverbs/Cargo.toml";

/// All steps, cheap ones first. All that compile use one profile and one set of features, so that
/// they share their work.
pub fn all(workspace: &Workspace, without_deps: bool) -> Vec<Step> {
    let cargo = Invocation::cargo;
    let xtask = Invocation::xtask;
    let fuzz = workspace.root.join("fuzz/Cargo.toml").exists();

    let mut formats = vec![cargo(&[
        "fmt", "--all", "--check", "--", "--color", "never",
    ])];
    let mut apart = vec![CROSSCHECK];
    apart.extend(fuzz.then_some("fuzz/Cargo.toml"));
    for manifest in apart {
        formats.push(cargo(&[
            "fmt",
            "--manifest-path",
            manifest,
            "--check",
            "--",
            "--color",
            "never",
        ]));
    }

    // Each alone: together, one crate's features would turn on another's.
    let mut libraries = vec![xtask(&["tidy", "--trees"])];
    for package in workspace.libraries() {
        let name = package.name.as_str();
        let flags = ["-p", name, "--lib", "--no-default-features", "--locked"];
        let mut words = vec!["clippy", "--quiet"];
        words.extend(flags);
        words.extend(["--", "-D", "warnings"]);
        libraries.push(cargo(&words));
    }

    let whole = ["--workspace", "--all-features", "--locked"];
    let with = |first: &[&str], last: &[&str]| {
        let mut words = first.to_vec();
        words.extend(whole);
        words.extend(last);
        cargo(&words)
    };
    // With `deps` left out, a missing peer is not the tree's fault: those tests then skip themselves.
    let peers = if without_deps { "0" } else { "1" };
    // `cargo test --examples` makes tests of the examples, not the programs that some tests run.
    let examples = with(
        &["build", "--quiet"],
        &["--lib", "--bins", "--tests", "--examples"],
    );
    let mut tests = with(
        &["test", "--no-fail-fast"],
        &["--lib", "--bins", "--tests", "--", "--show-output"],
    );
    tests = tests.minutes(40);
    if peers == "1" {
        tests = tests.env("RDMA_REQUIRE_PEERS", peers);
    }

    let mut steps = vec![
        step(
            "deps",
            "the Debian packages that tests and labs use",
            vec![xtask(&["deps", "--yes"])],
        ),
        step("fmt", "formatting", formats).quick(),
        step(
            "tidy",
            "layers, features, unsafe, fixtures, words",
            vec![xtask(&["tidy"])],
        )
        .quick(),
        step(
            "clippy",
            "lints, with warnings as errors",
            vec![with(
                &["clippy", "--quiet", "--keep-going", "--all-targets"],
                &["--", "-D", "warnings"],
            )],
        )
        .quick(),
        step(
            "libraries",
            "each library without its command line",
            libraries,
        ),
        step("tests", "unit and integration tests", vec![examples, tests])
            .quick()
            .tests(),
        step(
            "doctests",
            "the examples in the documentation",
            vec![with(
                &["test", "--no-fail-fast", "--doc"],
                &["--", "--show-output"],
            )],
        )
        .tests(),
        step(
            "docs",
            "the documentation, with warnings as errors",
            vec![
                with(
                    &["doc", "--quiet", "--keep-going", "--no-deps", "--lib"],
                    &[],
                )
                .env("RUSTDOCFLAGS", "-D warnings"),
            ],
        ),
        step(
            "codegen",
            "generated files are up to date",
            vec![xtask(&["codegen", "--check", "--with-tests"])],
        ),
        step(
            "deny",
            "licences, bans and sources of dependencies",
            vec![xtask(&["deny"])],
        ),
    ];
    // A package apart, since only it needs headers and libclang. It builds where the workspace does.
    let crosscheck = [
        "test",
        "--locked",
        "--manifest-path",
        CROSSCHECK,
        "--test",
        "*",
    ];
    steps.push(
        step(
            "crosscheck",
            "rverbs-sys against what bindgen makes of the installed headers",
            vec![
                cargo(&crosscheck).env("CARGO_TARGET_DIR", workspace.target.display().to_string()),
            ],
        )
        .tests(),
    );
    // Apart again: its own copy of rdma-core is built with cmake.
    let ibverbs = ["test", "--locked", "--manifest-path", IBVERBS];
    steps.push(
        step(
            "ibverbs",
            "a program that uses the crate ibverbs, under the preloaded library",
            vec![cargo(&ibverbs).env("CARGO_TARGET_DIR", workspace.target.display().to_string())],
        )
        .tests(),
    );
    if fuzz {
        steps.push(step(
            "fuzz",
            "the fuzz targets compile, and their corpora pass",
            vec![xtask(&["fuzz", "--replay"])],
        ));
    }
    if workspace.has_benches() {
        let flags = ["--no-fail-fast", "--quiet", "--bench", "*"];
        steps.push(step(
            "benches",
            "each bench runs once",
            vec![with(&["test"], &flags)],
        ));
    }
    steps.push(step(
        "lab-ibsim",
        "OpenSM and infiniband-diags on ibsim",
        vec![xtask(&["lab", "ibsim", "--check"]).minutes(10)],
    ));
    steps.push(step(
        "lab-qemu",
        "the kernel's rxe device and the C tools in a guest",
        vec![xtask(&["lab", "qemu", "--check"]).minutes(10)],
    ));
    steps.push(step(
        "lab-rxe",
        "soft-roce against the kernel's rxe on a wire",
        vec![xtask(&["lab", "rxe", "--check"]).minutes(15)],
    ));
    steps.push(step(
        "demo",
        "what a newcomer sees",
        vec![xtask(&["demo", "--with-tests"]).minutes(10)],
    ));
    steps
}
