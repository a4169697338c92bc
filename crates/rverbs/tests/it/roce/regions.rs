//! Memory that an engine reads and writes: plain vectors, checked as a provider checks what is registered.

use std::collections::BTreeMap;

use rverbs::provider::roce::proto::{Access, AtomicOp, Fault, Memory};

/// A registered region.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub pd: u32,
    pub addr: u64,
    pub access: Access,
    pub bytes: Vec<u8>,
}

/// The memory of one side: regions by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions(pub BTreeMap<u32, Region>);

impl Regions {
    fn range(
        &self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        len: u64,
    ) -> Result<std::ops::Range<usize>, Fault> {
        let region = self
            .0
            .get(&key)
            .filter(|region| region.pd == pd)
            .ok_or(Fault::Key)?;
        if !region.access.contains(access) {
            return Err(Fault::Rights);
        }
        let start = addr.checked_sub(region.addr).ok_or(Fault::Bounds)?;
        let end = start.checked_add(len).ok_or(Fault::Bounds)?;
        if end > region.bytes.len() as u64 {
            return Err(Fault::Bounds);
        }
        Ok(start as usize..end as usize)
    }

    pub(crate) fn bytes(&self, key: u32) -> &[u8] {
        &self.0[&key].bytes
    }
}

impl Memory for Regions {
    fn check(&self, pd: u32, key: u32, access: Access, addr: u64, len: u64) -> Result<(), Fault> {
        self.range(pd, key, access, addr, len).map(|_| ())
    }

    fn read(
        &mut self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let range = self.range(pd, key, access, addr, out.len() as u64)?;
        out.copy_from_slice(&self.0[&key].bytes[range]);
        Ok(())
    }

    fn write(
        &mut self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        data: &[u8],
    ) -> Result<(), Fault> {
        let range = self.range(pd, key, access, addr, data.len() as u64)?;
        self.0.get_mut(&key).unwrap().bytes[range].copy_from_slice(data);
        Ok(())
    }

    fn atomic(&mut self, pd: u32, key: u32, addr: u64, op: AtomicOp) -> Result<u64, Fault> {
        let range = self.range(pd, key, Access::REMOTE_ATOMIC, addr, 8)?;
        let bytes = &mut self.0.get_mut(&key).unwrap().bytes[range];
        let old = u64::from_ne_bytes((&*bytes).try_into().unwrap());
        bytes.copy_from_slice(&op.apply(old).to_ne_bytes());
        Ok(old)
    }

    fn invalidate(&mut self, pd: u32, key: u32) -> Result<(), Fault> {
        // As a provider does: only what has remote rights can be taken back by a peer.
        let region = self
            .0
            .get_mut(&key)
            .filter(|region| region.pd == pd && region.access != Access::LOCAL_WRITE);
        region.ok_or(Fault::Key)?.access = Access::LOCAL_WRITE;
        Ok(())
    }
}
