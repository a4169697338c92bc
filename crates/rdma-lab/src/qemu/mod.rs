//! A QEMU guest with Linux's software RDMA devices: Debian's kernel, an initramfs of this machine's own programs, no KVM, no root.
//!
//! The guest's init waits for commands on a virtio port. [`Guest::run`] sends one and gets back its stdout, its stderr and its exit code exactly:
//! they travel as base64 beside the console, so no output can be mistaken for the protocol.
//!
//! Two hosts with a wire between them are two guests with [`Builder::netdev`] `socket,listen=…` and `socket,connect=…`: Linux 6.1's rxe works in the
//! first network namespace only. `tc qdisc add dev eth0 root netem loss 1%` makes that wire lossy.
//!
//! Processes that a command leaves in the background stay until the guest ends, so a server can be started in one step and used in the next.

mod cpio;
mod initramfs;
mod kernel;
mod link;
pub(crate) mod pair;
pub mod script;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

pub use cpio::Tree;
pub use kernel::{CACHE, Kernel};

use crate::peer;
use crate::process::{Folder, Output, Running, tail};
use initramfs::Initramfs;
use link::Link;

/// The programs of every guest, besides busybox's.
pub const PROGRAMS: &[&str] = &[
    "ip",
    "rdma",
    "tc",
    "ibv_devinfo",
    "ib_send_lat",
    "ib_write_bw",
    "rping",
];

/// Added to a step's own limit before the host gives the guest up: emulation is slow, and a loaded machine slower.
const GRACE: Duration = Duration::from_secs(30);

/// How long each step of making the devices may take: a moment, but not on a machine that does ten other things.
const SETUP: Duration = Duration::from_secs(240);

/// What a guest is to be made of.
#[derive(Debug, Clone)]
#[must_use]
pub struct Builder {
    programs: Vec<PathBuf>,
    files: Vec<(PathBuf, PathBuf)>,
    modules: Vec<String>,
    rxe: bool,
    siw: bool,
    netdevs: Vec<String>,
    cpus: u32,
    memory_mib: u32,
    boot_within: Duration,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            programs: PROGRAMS.iter().map(PathBuf::from).collect(),
            files: Vec::new(),
            modules: Vec::new(),
            rxe: false,
            siw: false,
            netdevs: Vec::new(),
            cpus: 2,
            memory_mib: 1024,
            boot_within: Duration::from_secs(240),
        }
    }
}

impl Builder {
    /// Adds a program with its shared libraries: a peer by its name, or one of our own binaries by its path. In the guest it is in `PATH`.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.programs.push(program.into());
        self
    }

    /// Adds a file of this machine at a path of the guest.
    pub fn file(mut self, host: impl Into<PathBuf>, guest: impl Into<PathBuf>) -> Self {
        self.files.push((host.into(), guest.into()));
        self
    }

    /// Loads one more kernel module, with those that it needs.
    pub fn module(mut self, name: impl Into<String>) -> Self {
        self.modules.push(name.into());
        self
    }

    /// Adds the RoCEv2 device `rxe0` on `v0` (10.9.0.1/24), one end of a veth pair whose other end is `v1` (10.9.0.2/24).
    pub const fn rxe(mut self, wanted: bool) -> Self {
        self.rxe = wanted;
        self
    }

    /// Adds the iWARP device `siw0` on `v0`, as [`Builder::rxe`] does with rxe. Debian 12's kernel 6.1 is built without siw, and booting says so.
    pub const fn siw(mut self, wanted: bool) -> Self {
        self.siw = wanted;
        self
    }

    /// Adds a virtio network card on a QEMU `-netdev` back end, without its `id=`: `user`, or `dgram,…` and `socket,…` between two guests.
    pub fn netdev(mut self, backend: impl Into<String>) -> Self {
        self.netdevs.push(backend.into());
        self
    }

    /// How many processors it has. Default 2.
    pub const fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Its memory. Default 1024 MiB.
    pub const fn memory_mib(mut self, mib: u32) -> Self {
        self.memory_mib = mib;
        self
    }

    /// How long it may take to boot. Default 240 s: about 10 s on an idle machine, and more than 30 s on a busy one.
    pub const fn boot_within(mut self, limit: Duration) -> Self {
        self.boot_within = limit;
        self
    }

    /// Builds the initramfs, boots, loads the modules and makes the devices.
    ///
    /// # Errors
    /// A missing package (by name), a kernel that apt can't download, a guest that does not come up (with the end of its console), or a device that
    /// the guest's kernel refuses.
    pub fn boot(self) -> Result<Guest> {
        let qemu = peer::need("qemu-system-x86_64")?;
        let started = Instant::now();
        let mut tree = Initramfs::new()?;
        for program in &self.programs {
            tree.program(program)?;
        }
        tree.providers()?;
        for (host, guest) in &self.files {
            tree.file(host, guest)?;
        }
        let kernel = Kernel::find()?;
        let siw = self.siw.then(|| "siw".to_owned());
        tree.modules(
            &kernel,
            &self.modules.iter().cloned().chain(siw).collect::<Vec<_>>(),
        )?;
        let folder = Folder::new()?;
        let initrd = folder.path().join("initrd");
        std::fs::write(&initrd, tree.archive()?).context("writing the initramfs")?;
        let socket = folder.path().join("port");
        let built = started.elapsed();

        let mut command = Command::new(qemu);
        command
            .args([
                "-M",
                "q35",
                "-cpu",
                "max",
                "-accel",
                "tcg,thread=multi",
                "-nodefaults",
                "-no-reboot",
                "-display",
                "none",
                "-monitor",
                "none",
            ])
            .args([
                "-smp",
                &self.cpus.to_string(),
                "-m",
                &format!("{}M", self.memory_mib),
            ])
            .arg("-kernel")
            .arg(&kernel.image)
            .arg("-initrd")
            .arg(&initrd)
            .args([
                "-append",
                "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check cryptomgr.notests audit=0 apparmor=0",
                "-serial",
                "stdio",
            ])
            .arg("-chardev")
            .arg(format!(
                "socket,id=lab,path={},server=on,wait=off",
                socket.display()
            ))
            .args([
                "-device",
                "virtio-serial-pci",
                "-device",
                "virtserialport,chardev=lab,name=rdma-lab",
            ])
            .args([
                "-object",
                "rng-random,id=rng,filename=/dev/urandom",
                "-device",
                "virtio-rng-pci,rng=rng",
            ])
            .current_dir(folder.path());
        for (index, backend) in self.netdevs.iter().enumerate() {
            command.args([
                "-netdev",
                &format!("{backend},id=net{index}"),
                "-device",
                &format!("virtio-net-pci,netdev=net{index},mac={}", next_mac()),
            ]);
        }
        let mut server = Running::start(&command)?;
        // The socket's file is there a moment before QEMU listens on it.
        let mut link = None;
        server.wait_until("its port", Duration::from_secs(20), |_| {
            link = Link::connect(&socket).ok();
            Ok(link.is_some())
        })?;
        let link = link.context("connecting to the guest's port")?;
        let mut guest = Guest {
            link,
            server,
            folder,
            next: 0,
            kernel: kernel.release,
            built,
            booted: Duration::ZERO,
        };
        let ready = guest
            .read_line(Instant::now() + self.boot_within)
            .context("the guest did not boot")?;
        if !ready.starts_with("READY ") {
            bail!(
                "the guest did not boot: it said {ready:?}\n{}",
                tail(&[&guest.server.stdout()])
            );
        }
        guest.setup("loading kernel modules", "while read -r m; do insmod /lab/modules/$m || { echo insmod $m failed >&2; exit 1; }; done </lab/late")?;
        guest.setup("setting up lo", "ip link set lo up")?;
        if self.rxe || self.siw {
            guest.setup(
                "making a veth pair",
                "set -e; ip link add v0 type veth peer name v1; for v in v0 v1; do ip link set $v mtu 4200 up; done; ip addr add 10.9.0.1/24 dev v0; ip addr add 10.9.0.2/24 dev v1",
            )?;
        }
        for (wanted, kind) in [(self.rxe, "rxe"), (self.siw, "siw")] {
            if wanted {
                guest.setup(&format!("making {kind}0"), &device_script(kind))?;
            }
        }
        guest.booted = started.elapsed();
        Ok(guest)
    }
}

/// Another MAC address for each card of all labs on this machine: QEMU would give each guest the same, and two guests could not talk.
fn next_mac() -> String {
    static SERIAL: AtomicU8 = AtomicU8::new(0);
    let [.., high, low] = std::process::id().to_be_bytes();
    format!(
        "52:54:00:{high:02x}:{low:02x}:{:02x}",
        SERIAL.fetch_add(1, Ordering::Relaxed)
    )
}

/// A script's first line that says something, for messages.
fn headline(script: &str) -> String {
    let mut lines = script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() {
        format!("{first} …")
    } else {
        first.to_owned()
    }
}

/// Adds the device and waits until its port is active, at most for 10 s.
fn device_script(kind: &str) -> String {
    format!(
        "rdma link add {kind}0 type {kind} netdev v0 || exit 1\n\
         for _ in $(seq 100); do grep -q ACTIVE /sys/class/infiniband/{kind}0/ports/1/state && exit 0; sleep 0.1; done\n\
         echo {kind}0 stays $(cat /sys/class/infiniband/{kind}0/ports/1/state) >&2; exit 1"
    )
}

/// A running guest. Dropping it kills it.
#[derive(Debug)]
pub struct Guest {
    link: Link,
    server: Running,
    folder: Folder,
    next: u32,
    kernel: String,
    built: Duration,
    booted: Duration,
}

impl Guest {
    /// Starts to describe a guest.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs a shell script in the guest, at most for `limit`, and returns what it printed and its exit code.
    ///
    /// # Errors
    /// A script that does not end in time (its process group is killed, what it said is in the message, and the guest can be used further), and a
    /// guest that died or no longer answers, with the end of its console. Another exit code than 0 is not an error.
    pub fn run(&mut self, script: &str, limit: Duration) -> Result<Output> {
        let id = self.next;
        self.next += 1;
        let seconds =
            limit.as_secs().max(1) + u64::from(limit.subsec_nanos() > 0 && limit.as_secs() > 0);
        let begun = Instant::now();
        self.link.send(&format!(
            "RUN {id} {seconds} {}\n",
            link::encode(script.as_bytes())
        ))?;
        let deadline = begun + Duration::from_secs(seconds) + GRACE;
        let name = headline(script);
        let died = || format!("running in the guest: {name}");
        let head = self.read_line(deadline).with_context(died)?;
        let stdout = link::decode(&self.read_line(deadline).with_context(died)?)?;
        let stderr = link::decode(&self.read_line(deadline).with_context(died)?)?;
        let words: Vec<_> = head.split(' ').collect();
        let &["DONE", echoed, code, late, millis] = words.as_slice() else {
            bail!("the guest answered {head:?}");
        };
        if echoed != id.to_string() {
            bail!("the guest answered step {echoed} and not step {id}");
        }
        if late == "1" {
            bail!(
                "in the guest, this did not end within {seconds} s and was killed: {name}\n{}",
                tail(&[&stdout, &stderr])
            );
        }
        let code = code
            .parse()
            .with_context(|| format!("the guest answered {head:?}"))?;
        let wall = Duration::from_millis(millis.parse().unwrap_or(0));
        Ok(Output {
            command: name,
            stdout,
            stderr,
            code,
            wall,
        })
    }

    /// Its kernel's release.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// How long fetching the kernel (the first time) and building the initramfs took; part of [`Guest::booted_after`].
    #[must_use]
    pub const fn built_after(&self) -> Duration {
        self.built
    }

    /// From [`Builder::boot`] to a guest with its devices.
    #[must_use]
    pub const fn booted_after(&self) -> Duration {
        self.booted
    }

    /// What its kernel and init wrote to the console up to now.
    #[must_use]
    pub fn console(&self) -> String {
        String::from_utf8_lossy(&self.server.stdout()).into_owned()
    }

    /// The folder of its files on this machine; it goes when the guest does.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Switches it off and waits for its end.
    ///
    /// # Errors
    /// When QEMU does not end within 30 s; it is killed then.
    pub fn power_off(mut self) -> Result<()> {
        self.link.send("END\n")?;
        let limit = self.server.elapsed() + Duration::from_secs(30);
        self.server.finish(limit, || Ok(())).map(|_| ())
    }

    fn setup(&mut self, what: &str, script: &str) -> Result<()> {
        let output = self
            .run(script, SETUP)
            .with_context(|| format!("{what} in the guest"))?;
        if output.code == 0 {
            return Ok(());
        }
        // The reason is often only in the kernel's log.
        let log = self
            .run("dmesg | tail -n 5", Duration::from_secs(60))
            .map(|log| log.stdout)
            .unwrap_or_default();
        bail!(
            "{what} in the guest failed with exit code {}\n{}\nthe kernel's last words:\n{}",
            output.code,
            tail(&[&output.stdout, &output.stderr]),
            tail(&[&log])
        );
    }

    fn read_line(&mut self, deadline: Instant) -> Result<String> {
        loop {
            if let Some(line) = self.link.line(Duration::from_millis(50))? {
                return Ok(line);
            }
            if let Some(code) = self.server.try_wait()? {
                bail!(
                    "QEMU ended with exit code {code}\n{}",
                    tail(&[&self.server.stdout(), &self.server.stderr()])
                );
            }
            if Instant::now() > deadline {
                bail!(
                    "the guest does not answer; its console ends with\n{}",
                    tail(&[&self.server.stdout(), &self.server.stderr()])
                );
            }
        }
    }
}
