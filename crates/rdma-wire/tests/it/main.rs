//! Round trips and hostile input.

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use proptest::prelude::*;
use rdma_wire::{
    Be16, Be24, Be32, Be64, Be128, DecodeError, Hexdump, Reader, assert_layout, open_enum, prefix,
    slice, view,
};

open_enum! {
    /// Who answers.
    pub struct Method: u8 { GET = 1 => "Get", SET = 2 => "Set" }
}

open_enum! {
    /// Sixteen bits of it.
    pub struct Attribute: Be16 as u16 { NODE_INFO = 0x11 => "NodeInfo", PORT_INFO = 0x15 }
}

/// The first word of a GRH's route, as a table of the specification lists it.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
struct FlowHop {
    raw: bool,
    #[bits(3)]
    __: u8,
    #[bits(20)]
    flow_label: u32,
    #[bits(8)]
    hop_limit: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Sample {
    method: Method,
    attribute: Attribute,
    qpn: Be24,
    gid: Be128,
    flow: Be32,
}
assert_layout!(Sample, 26);
assert_layout!(FlowHop, 4);

#[test]
fn integers_stand_in_wire_order() {
    assert_eq!(Be16::new(0x0102).to_bytes(), [1, 2]);
    assert_eq!(Be24::new(0x0001_0203).to_bytes(), [1, 2, 3]);
    assert_eq!(Be24::new(0xff01_0203).get(), 0x0001_0203);
    assert_eq!(Be32::from(0x0102_0304).to_bytes(), [1, 2, 3, 4]);
    assert_eq!(Be64::from_bytes([0, 0, 0, 0, 0, 0, 1, 0]), 256);
    assert_eq!(
        format!("{:#x} {:?} {}", Be32::new(255), Be32::new(7), Be16::new(9)),
        "0xff 7 9"
    );
    let mut value = Be16::ZERO;
    value.set(5);
    assert!(Be16::new(256) > value);
}

#[test]
fn open_enumerations_keep_what_they_do_not_know() {
    assert_eq!(
        format!("{} {:?}", Method::GET, Method::new(0x7f)),
        "Get Method(0x7f)"
    );
    assert_eq!(Attribute::new(0x15).name(), Some("PORT_INFO"));
    assert_eq!(Attribute::new(0xff90).get(), 0xff90);
    assert_eq!(Method::VALUES, [Method::GET, Method::SET]);
    assert_eq!(format!("[{:>5}]", Method::SET), "[  Set]");
}

#[test]
fn packed_fields_read_from_the_top_bit() {
    let bytes = [0x80, 0x12, 0x34, 0x40];
    let (flow, rest) = prefix::<FlowHop>("flow", &bytes).unwrap();
    assert!(flow.raw());
    assert_eq!(
        (flow.flow_label(), flow.hop_limit(), rest.len()),
        (0x1234, 0x40, 0)
    );
}

#[test]
fn errors_name_field_and_offset() {
    let bytes = [0u8; 10];
    assert_eq!(
        view::<Be64>("GUID", &bytes, 8).unwrap_err(),
        DecodeError::Truncated {
            what: "GUID",
            offset: 8,
            needed: 8,
            had: 2
        }
    );
    assert_eq!(
        view::<Be64>("GUID", &bytes, usize::MAX)
            .unwrap_err()
            .offset(),
        usize::MAX as u64
    );
    assert!(slice("tail", &bytes, usize::MAX, 2).is_err());
    assert_eq!(slice("tail", &bytes, 8, 2).unwrap(), [0, 0]);
    assert_eq!(
        DecodeError::invalid("TLV type", 4, 0x33, "1 to 5")
            .at(0x10)
            .to_string(),
        "TLV type at offset 0x14 is 0x33, not 1 to 5"
    );
}

#[test]
fn a_reader_keeps_its_place_when_it_fails() {
    let bytes = [1, 0, 2, 0, 0, 0, 3, 9, 9];
    let mut reader = Reader::at(&bytes, 0x100);
    assert_eq!(reader.u8("a").unwrap(), 1);
    assert_eq!(reader.u16("b").unwrap(), 2);
    reader.align(4);
    assert_eq!(reader.offset(), 0x104);
    assert!(reader.u64("c").is_err());
    assert_eq!((reader.offset(), reader.remaining()), (0x104, 5));
    let mut sub = reader.sub("part", 4).unwrap();
    assert!(sub.u64("d").is_err());
    assert_eq!(sub.u32("d").unwrap(), 0x0000_0309);
    assert!(sub.is_empty());
    reader.align(0);
    reader.align(0x1000);
    assert_eq!((reader.offset(), reader.rest()), (0x109, &[][..]));
    assert!(reader.skip("e", 1).is_err());
}

#[test]
fn a_hexdump_shows_offsets_and_characters() {
    let bytes: Vec<u8> = (0x3a..0x4d).collect();
    assert_eq!(
        Hexdump::new(&bytes).to_string(),
        "00000000  3a3b3c3d 3e3f4041 42434445 46474849  :;<=>?@ABCDEFGHI\n\
         00000010  4a4b4c                               JKL\n"
    );
}

proptest! {
    #[test]
    fn every_number_comes_back(a: u16, b: u32, c: u64, d: u128) {
        prop_assert_eq!(Be16::new(a).get(), a);
        prop_assert_eq!(Be32::new(b).get(), b);
        prop_assert_eq!(Be24::new(b).get(), b & Be24::MAX);
        prop_assert_eq!(Be64::new(c).get(), c);
        prop_assert_eq!(Be128::new(d).get(), d);
    }

    #[test]
    fn order_is_that_of_the_numbers(a: u64, b: u64) {
        prop_assert_eq!(Be64::new(a).cmp(&Be64::new(b)), a.cmp(&b));
    }

    #[test]
    fn a_structure_is_its_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..64), offset in 0usize..70) {
        match view::<Sample>("sample", &bytes, offset) {
            Ok(sample) => prop_assert_eq!(bytemuck::bytes_of(sample), &bytes[offset..offset + 26]),
            Err(DecodeError::Truncated { needed, had, .. }) => prop_assert!(had < needed),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
