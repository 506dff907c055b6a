//! What a large pool costs: time and memory of an open, and room on the medium.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use nearpm::prelude::*;

const BYTES: u64 = 1 << 40;

/// Resident memory of this process, and the most that it has had, as the system says it (proc(5)).
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name| status.lines().find_map(|line| line.strip_prefix(name)).map_or("unknown", str::trim);
    format!("{} resident, {} at most", of("VmRSS:"), of("VmHWM:"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("give a folder on a file system with sparse files")?;
    let path = Path::new(&folder).join("large.pool");
    let location = path.to_str().ok_or("a path that is no text")?;
    File::create_new(&path)?.set_len(BYTES)?;
    println!("before:  {}", resident());
    let start = Instant::now();
    let pool = DirectPool::create(location, 0, &Options::new())?;
    println!("create:  {:.3} s", start.elapsed().as_secs_f64());
    pool.tx(|tx| tx.root_or_zeroed::<u64>().and_then(|root| tx.set(root, 7)))?;
    pool.close()?;
    let start = Instant::now();
    let pool = DirectPool::open(location, &Options::new())?;
    println!("open:    {:.3} s", start.elapsed().as_secs_f64());
    println!("open:    {}", resident());
    println!("room:    {} KiB of {} GiB", path.metadata()?.blocks() / 2, pool.bytes() >> 30);
    pool.close()?;
    Ok(std::fs::remove_file(&path)?)
}
