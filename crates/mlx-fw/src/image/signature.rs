//! Signatures: whether an image is signed, and with which key.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be32, assert_layout};

/// The head of IMAGE_SIGNATURE_256 and IMAGE_SIGNATURE_512; the signature follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_image_signature")]
pub struct SignatureHead {
    /// The UUID of the signature, from the time of signing.
    pub signature_uuid: [Be32; 4],
    /// The UUID of the key pair.
    pub keypair_uuid: [Be32; 4],
}
assert_layout!(SignatureHead, 0x20);

impl SignatureHead {
    /// Whether the key is one for development: its UUID ends in 48 zero bits, and is not all zero.
    #[must_use]
    pub fn is_development(&self) -> bool {
        let [a, b, c, d] = self.keypair_uuid.map(Be32::get);
        (a != 0 || b != 0 || c != 0) && d == 0 && c & 0xffff == 0
    }
}
