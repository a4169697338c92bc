//! The same cases for every provider.

mod case;
pub(crate) mod lab;
mod object;
mod repeat;

use rverbs::provider::Kind;

use lab::Lab;

fn run(kind: Kind) {
    let Some(lab) = Lab::open(kind) else { return };
    for (name, case) in case::CASES {
        eprintln!("{kind}: {name}");
        case(&lab);
    }
    eprintln!("{kind}: {} cases", case::CASES.len());
}

#[test]
fn shm_conforms() {
    run(Kind::Shm);
}

#[test]
fn verbs_conforms() {
    run(Kind::Verbs);
}

#[test]
fn roce_conforms() {
    run(Kind::Roce);
}
