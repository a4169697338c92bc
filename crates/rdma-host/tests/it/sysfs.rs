//! Hosts made of files.

use std::path::Path;

use rdma_host::umad::{self, UmadPort};
use rdma_host::{Error, Selector, SysRoot};

struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn put(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        self
    }

    fn adapter(&self, number: u8, link_layer: &str, state: &str) -> &Self {
        let device = format!("mlx5_{number}");
        let port = format!("sys/class/infiniband/{device}/ports/1");
        self.put(
            &format!("sys/class/infiniband_mad/umad{number}/ibdev"),
            &format!("{device}\n"),
        )
        .put(
            &format!("sys/class/infiniband_mad/umad{number}/port"),
            "1\n",
        )
        .put(
            &format!("sys/class/infiniband/{device}/node_guid"),
            "0002:c903:0000:0001\n",
        )
        .put(&format!("{port}/link_layer"), &format!("{link_layer}\n"))
        .put(&format!("{port}/state"), &format!("{state}\n"))
        .put(&format!("{port}/lid"), "0x1f\n")
        .put(
            &format!("{port}/gids/0"),
            "fe80:0000:0000:0000:0002:c903:0000:0002\n",
        )
    }

    fn root(&self) -> SysRoot {
        SysRoot::new(self.0.path())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

#[test]
fn a_host_without_anything() {
    let host = Host::new();
    assert!(matches!(umad::list(&host.root()), Err(Error::NoDevice)));
    host.put("sys/class/infiniband/mlx5_0/node_guid", "x");
    assert!(matches!(umad::list(&host.root()), Err(Error::NoUmad)));
}

#[test]
fn devices_are_read_and_picked() {
    let host = Host::new();
    host.adapter(10, "InfiniBand", "4: ACTIVE")
        .adapter(2, "InfiniBand", "1: DOWN")
        .adapter(0, "Ethernet", "4: ACTIVE")
        // Not from a kernel we know; passed over.
        .put("sys/class/infiniband_mad/umad3/ibdev", "mlx5_3")
        .put("sys/class/infiniband_mad/umadx/ibdev", "mlx5_4")
        .put("sys/class/infiniband_mad/umad5/port", "nonsense")
        .put("sys/class/infiniband_mad/abi_version", "5");
    let devices = umad::list(&host.root()).expect("devices");
    let names: Vec<&str> = devices.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["umad0", "umad2", "umad10"]);
    let last = &devices[2];
    assert_eq!(last.lid.map(|lid| lid.get()), Some(0x1f));
    assert_eq!(
        last.port_guid.map(|guid| guid.get()),
        Some(0x0002_c903_0000_0002)
    );
    assert_eq!(
        last.node_guid.map(|guid| guid.get()),
        Some(0x0002_c903_0000_0001)
    );
    assert_eq!(last.state.as_deref(), Some("ACTIVE"));

    let pick = |name, port| umad::pick(&devices, name, port);
    assert_eq!(pick(None, None).expect("the active one").name, "umad10");
    assert_eq!(
        pick(Some("mlx5_2"), Some(1)).expect("by name").name,
        "umad2"
    );
    assert_eq!(
        pick(Some("umad2"), None).expect("by MAD device").device,
        "mlx5_2"
    );
    assert!(matches!(
        pick(Some("mlx5_0"), None),
        Err(Error::Ethernet { .. })
    ));
    match pick(Some("mlx5_9"), Some(2)) {
        Err(Error::UnknownDevice { name, have }) => {
            assert_eq!(name, "mlx5_9:2");
            assert_eq!(have[0], "mlx5_0:1 (umad0)");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        umad::pick(&devices[..1], None, None),
        Err(Error::OnlyEthernet)
    ));
}

#[test]
fn a_device_that_cannot_be_opened_says_why() {
    let host = Host::new();
    host.adapter(0, "InfiniBand", "4: ACTIVE");
    let open = || {
        rdma_host::open(&host.root(), &Selector::Any)
            .err()
            .expect("no such device")
    };
    assert!(
        matches!(
            open(),
            Error::File {
                doing: "opening",
                ..
            }
        ),
        "no device file"
    );
    // A plain file is no MAD device: the first ioctl says so.
    host.put("dev/infiniband/umad0", "");
    match open() {
        Error::Register {
            device,
            port: 1,
            class: 0x81,
            ..
        } => assert_eq!(device, "mlx5_0"),
        other => panic!("{other}"),
    }
    let mut ethernet = umad::list(&host.root()).expect("a device")[0].clone();
    ethernet.link_layer = Some("Ethernet".to_owned());
    assert!(matches!(
        UmadPort::open(&host.root(), &ethernet),
        Err(Error::Ethernet { .. })
    ));
    // Only for others than root is a mode a bar.
    if std::fs::read("/proc/self/mem").is_err() {
        let _ = host.path();
    }
}
