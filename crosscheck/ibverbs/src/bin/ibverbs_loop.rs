//! One message at a time, on a queue pair connected to itself: `ibverbs_loop message ROUNDS`.
//!
//! `cargo xtask bench verbs` measures it beside the loops of C and of `rverbs`. The crate has messages
//! only: no write can be posted with it.

use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [verb, rounds] = &args[..] else {
        return Err("usage: ibverbs_loop message ROUNDS".into());
    };
    if verb != "message" {
        return Err("the crate ibverbs posts messages only".into());
    }
    let rounds: u32 = rounds.parse()?;
    let devices = ibverbs::devices()?;
    let context = devices.iter().next().ok_or("no device")?.open()?;
    let cq = context.create_cq(64, 0)?;
    let pd = context.alloc_pd()?;
    let prepared = pd
        .create_qp(&cq, &cq, ibverbs::ibv_qp_type::IBV_QPT_RC)
        .set_gid_index(0)
        .set_max_send_wr(16)
        .set_max_recv_wr(16)
        .build()?;
    let endpoint = prepared.endpoint();
    let mut qp = prepared.handshake(endpoint)?;
    let mut mr = pd.allocate::<u64>(2)?;
    let mut wcs = [ibverbs::ibv_wc::default(); 1];
    let begin = Instant::now();
    for _ in 0..rounds {
        // SAFETY: the memory is looked at only after both completions.
        unsafe { qp.post_receive(&mut mr, 1..2, 2) }?;
        // SAFETY: as above.
        unsafe { qp.post_send(&mut mr, 0..1, 1) }?;
        let mut got = 0;
        while got < 2 {
            for wc in cq.poll(&mut wcs)? {
                if let Some((status, _)) = wc.error() {
                    return Err(format!("completion: {status:?}").into());
                }
                got += 1;
            }
        }
    }
    println!(
        "{:.1}",
        begin.elapsed().as_nanos() as f64 / f64::from(rounds)
    );
    Ok(())
}
