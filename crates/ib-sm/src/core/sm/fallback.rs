//! Shortest paths, each entry chosen by its own hash: what is used where no better engine is
//! given. A cable that goes changes only the entries that used it.

use crate::routing::{Engine, Fabric, NO_PORT, Options, Place, RouteError, Tables};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Fallback;

/// A number that looks random (splitmix64's finaliser).
const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Engine for Fallback {
    fn name(&self) -> &'static str {
        "fallback"
    }

    fn reference(&self) -> &'static str {
        "shortest paths by rendezvous hashing (Thaler, Ravishankar 1998)"
    }

    fn route(&self, fabric: &Fabric, _options: &Options) -> Result<Tables, RouteError> {
        let count = fabric.switches().len();
        let mut tables = Tables::empty(fabric);
        // Cables between switches, and what names a port in a hash.
        let links: Vec<Vec<(u8, u32, u64)>> = (0_u32..)
            .zip(fabric.switches())
            .map(|(switch, it)| {
                (0_u8..)
                    .zip(fabric.ports_of(switch))
                    .filter_map(|(number, port)| match port.as_ref()?.peer {
                        Place::Switch { switch: far, .. } => {
                            let name = mix(it.guid.get() ^ u64::from(number) << 56);
                            Some((number, far, name))
                        }
                        Place::End(_) => None,
                    })
                    .collect()
            })
            .collect();
        let mut targets: Vec<_> = fabric.targets().collect();
        targets.sort_by_key(|it| (it.switch, it.lid));
        let mut hops = vec![u32::MAX; count];
        for group in targets.chunk_by(|a, b| a.switch == b.switch) {
            let Some(root) = group.first().map(|it| it.switch) else {
                continue;
            };
            hops.fill(u32::MAX);
            if let Some(slot) = hops.get_mut(root as usize) {
                *slot = 0;
            }
            let mut order = vec![root];
            let mut at = 0;
            while let Some(&switch) = order.get(at) {
                at += 1;
                let next = hops.get(switch as usize).map_or(0, |it| it + 1);
                for &(_, far, _) in links.get(switch as usize).map_or(&[][..], Vec::as_slice) {
                    if let Some(slot) = hops.get_mut(far as usize).filter(|it| **it == u32::MAX) {
                        *slot = next;
                        order.push(far);
                    }
                }
            }
            for target in group {
                tables.set_port(root, target.lid, target.port);
            }
            for &switch in order.iter().skip(1) {
                let mine = hops.get(switch as usize).copied().unwrap_or(u32::MAX);
                let good: Vec<(u8, u64)> = links
                    .get(switch as usize)
                    .map_or(&[][..], Vec::as_slice)
                    .iter()
                    .filter(|&&(_, far, _)| hops.get(far as usize).is_some_and(|&it| it < mine))
                    .map(|&(number, _, name)| (number, name))
                    .collect();
                for target in group {
                    let salt = u64::from(target.lid).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let best = good.iter().max_by_key(|&&(_, name)| mix(name ^ salt));
                    let port = best.map_or(NO_PORT, |&(number, _)| number);
                    tables.set_port(switch, target.lid, port);
                }
            }
        }
        tables.account.engine = self.name().to_owned();
        tables.account.vls = 1;
        tables.account.sls = 1;
        Ok(tables)
    }
}
