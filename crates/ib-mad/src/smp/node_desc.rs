//! What a node's owner calls it (IBTA 14.2.5.2).

use core::fmt;

use bytemuck::{Pod, Zeroable};
use rdma_wire::assert_layout;

/// NodeDescription: 64 bytes of text, padded with zeros.
#[doc(alias = "ib_node_desc")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct NodeDescription([u8; 64]);
assert_layout!(NodeDescription, 64);

impl NodeDescription {
    /// From text; what does not fit is cut off.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; 64];
        for (to, from) in bytes.iter_mut().zip(text.bytes()) {
            *to = from;
        }
        Self(bytes)
    }

    /// The bytes up to the first zero.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// The text, with a space for every byte that is not printable ASCII, as the diagnostics
    /// print it. Nothing in it can steer a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        self.bytes()
            .iter()
            .map(|&byte| match byte {
                b' '..=b'~' => char::from(byte),
                _ => ' ',
            })
            .collect()
    }
}

impl fmt::Debug for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text(), f)
    }
}

impl fmt::Display for NodeDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}
