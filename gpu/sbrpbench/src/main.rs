use nearpm_gpusim::Config;
use nearpm_sbrpbench::{device::*, kernels::Lowering, programs::*};

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let size = Size::parse(&args[0])?;
    for p in all(size)? {
        if args.len() > 1 && !args[1..].iter().any(|a| p.name().eq_ignore_ascii_case(a)) { continue; }
        for (c, l) in [("artifact-epoch-far", Lowering::Gpm), ("artifact-epoch-far", Lowering::Hardware), ("artifact-sbrp-far", Lowering::Hardware), ("artifact-epoch-near", Lowering::Hardware), ("artifact-sbrp-near", Lowering::Hardware), ("artifact-improved-near", Lowering::Hardware)] {
            let mut config = Config::named(c).unwrap();
            config.budget = 200_000_000;
            let t = std::time::Instant::now();
            let mut d = Simulated::new(&config, l, p.image())?;
            let r = p.run(&mut d);
            let check = r.and_then(|()| p.check_done(&d.image()));
            let s = d.statistics;
            println!("{:6} {c} {l:?}: {} cycles, {:.1} M thr-inst, {:.1} M/s; misses {} hits {} persists {} coal {} waits l{} r{} e{} d{} bytes r{} w{} {}", p.name(), s.cycles, s.thread_instructions as f64/1e6, s.thread_instructions as f64/1e6/t.elapsed().as_secs_f64(), s.pm_read_misses, s.pm_read_hits, s.persists, s.coalesced, s.waits_for_line, s.waits_for_room, s.waits_for_eviction, s.waits_for_durability, s.pm_read_bytes, s.pm_written_bytes, check.map_or_else(|e| format!("WRONG {e:#}"), |()| "ok".into()));
        }
    }
    Ok(())
}
