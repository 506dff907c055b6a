//! INFO.

use nearpm::prelude::*;

use super::Redis;
use super::about::VERSION;
use super::config::policy;
use super::db::{Db, Outcome};
use super::reply::Reply;
use super::words::is;
use crate::options::Level;
use crate::tally::of;

/// Keys that are looked at to say how many expire.
const SAMPLE: usize = 10_000;

/// How many keys expire, and the mean time that is left to them: exact while there are few keys,
/// else drawn from a part of them.
fn expiring(db: &Db<'_>, from: &impl Load, keys: u64) -> Result<(u64, u64), Error> {
    let (_, found) = db.keys.scan(from, 0, SAMPLE)?;
    let left: Vec<_> = found.iter().filter(|(_, item)| item.expires != 0).collect();
    let sum: u128 = left.iter().map(|(_, item)| u128::from(item.expires.saturating_sub(db.keys.now_ms))).sum();
    let mean = sum / left.len().max(1) as u128;
    let share = (left.len() as u128 * u128::from(keys)).div_ceil(found.len().max(1) as u128);
    Ok((share as u64, mean as u64))
}

/// A number of the system about this process: of a file in /proc, the word with an index, from 0.
fn proc(file: &str, index: usize) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    // The name of the program in front may have spaces.
    let text = text.rsplit_once(") ").map_or(text.as_str(), |(_, rest)| rest);
    text.split_whitespace().nth(index).and_then(|word| word.parse().ok()).unwrap_or(0)
}

fn human(bytes: u64) -> String {
    let units = [(1u64 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')];
    let unit = units.into_iter().find(|(unit, _)| bytes >= *unit);
    unit.map_or_else(|| format!("{bytes}B"), |(unit, name)| format!("{:.2}{name}", bytes as f64 / unit as f64))
}

fn server(redis: &Redis, db: &Db<'_>) -> String {
    let up = redis.started.elapsed().as_secs();
    let port = db.client.and_then(|client| client.local.rsplit(':').next()).unwrap_or("0");
    let now = db.keys.now_ms * 1000;
    format!(
        "redis_version:{VERSION}\r\nredis_git_sha1:00000000\r\nredis_git_dirty:0\r\nredis_build_id:0\r\nredis_mode:standalone\r\nserver_name:nearpm\r\nnearpm_version:{}\r\nos:{} {}\r\narch_bits:64\r\nmultiplexing_api:epoll\r\nprocess_id:{}\r\nrun_id:{}\r\ntcp_port:{port}\r\nserver_time_usec:{now}\r\nuptime_in_seconds:{up}\r\nuptime_in_days:{}\r\nhz:10\r\nconfigured_hz:10\r\nlru_clock:{}\r\nexecutable:\r\nconfig_file:\r\nio_threads_active:{}\r\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        std::process::id(),
        redis.state.run_id,
        up / 86_400,
        db.keys.now_ms / 1000 % (1 << 24),
        u8::from(redis.options.threads > 1),
    )
}

fn clients(redis: &Redis) -> String {
    let totals = &redis.totals;
    let listening = redis.state.clients.all().iter().filter(|client| client.line_flag() == "P").count();
    format!(
        "connected_clients:{}\r\ncluster_connections:0\r\nmaxclients:{}\r\nclient_recent_max_input_buffer:0\r\nclient_recent_max_output_buffer:0\r\nblocked_clients:{}\r\ntracking_clients:0\r\nclients_in_timeout_table:0\r\npubsub_clients:{listening}\r\n",
        of(&totals.clients),
        redis.state.settings.max_clients.get(),
        redis.state.waiting.len(),
    )
}

fn memory(redis: &Redis, bytes: u64) -> String {
    let (limit, resident) = (redis.state.settings.memory_limit().unwrap_or(0), proc("statm", 1) * 4096);
    format!(
        "used_memory:{bytes}\r\nused_memory_human:{}\r\nused_memory_rss:{resident}\r\nused_memory_rss_human:{}\r\nused_memory_peak:{bytes}\r\nused_memory_peak_human:{}\r\nused_memory_dataset:{bytes}\r\nused_memory_lua:0\r\nused_memory_scripts:0\r\nnumber_of_cached_scripts:0\r\nnumber_of_functions:0\r\nmaxmemory:{limit}\r\nmaxmemory_human:{}\r\nmaxmemory_policy:{}\r\nmem_fragmentation_ratio:1.00\r\nmem_allocator:nearpm\r\nactive_defrag_running:0\r\nlazyfree_pending_objects:0\r\nlazyfreed_objects:0\r\n",
        human(bytes),
        human(resident),
        human(bytes),
        human(limit),
        policy(redis.eviction()),
    )
}

fn persistence(redis: &Redis, db: &Db<'_>) -> String {
    format!(
        "loading:0\r\nasync_loading:0\r\nrdb_changes_since_last_save:{}\r\nrdb_bgsave_in_progress:0\r\nrdb_last_save_time:{}\r\nrdb_last_bgsave_status:ok\r\nrdb_last_bgsave_time_sec:0\r\naof_enabled:{}\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\naof_last_bgrewrite_status:ok\r\naof_last_write_status:ok\r\nnearpm_durability:{:?}\r\nnearpm_pool:{}\r\n",
        redis.state.changes.load(std::sync::atomic::Ordering::Relaxed),
        db.keys.now_ms / 1000,
        u8::from(redis.options.durability != Level::Async),
        redis.options.durability,
        redis.options.pool,
    )
}

fn stats(redis: &Redis) -> String {
    let totals = &redis.totals;
    format!(
        "total_connections_received:{}\r\ntotal_commands_processed:{}\r\ninstantaneous_ops_per_sec:0\r\ntotal_net_input_bytes:0\r\ntotal_net_output_bytes:0\r\nrejected_connections:{}\r\nsync_full:0\r\nsync_partial_ok:0\r\nsync_partial_err:0\r\nexpired_keys:{}\r\nexpired_stale_perc:0.00\r\nevicted_keys:{}\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\npubsub_channels:{}\r\npubsub_patterns:{}\r\nlatest_fork_usec:0\r\ntotal_forks:0\r\n",
        of(&totals.accepted),
        of(&totals.requests),
        of(&totals.refused),
        of(&totals.expired),
        of(&totals.evictions),
        of(&totals.hits),
        of(&totals.gets).saturating_sub(of(&totals.hits)),
        redis.state.channels.len().0,
        redis.state.channels.len().1,
    )
}

/// INFO [section ...]
pub fn info(redis: &Redis, db: &Db<'_>, from: &impl Load, words: &[Vec<u8>], reply: &mut Reply<'_>) -> Outcome {
    let (keys, bytes) = (db.keys.len(from)?, db.keys.bytes(from)?);
    let ticks = |index| proc("stat", index) as f64 / 100.0;
    let keyspace = if keys == 0 {
        String::new()
    } else {
        let (expires, ttl) = expiring(db, from, keys)?;
        format!("db0:keys={keys},expires={expires},avg_ttl={ttl}\r\n")
    };
    let sections = [
        ("Server", server(redis, db)),
        ("Clients", clients(redis)),
        ("Memory", memory(redis, bytes)),
        ("Persistence", persistence(redis, db)),
        ("Stats", stats(redis)),
        (
            "Replication",
            format!(
                "role:master\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\nmaster_replid:{}\r\nmaster_repl_offset:0\r\nsecond_repl_offset:-1\r\nrepl_backlog_active:0\r\n",
                redis.state.run_id
            ),
        ),
        ("CPU", format!("used_cpu_sys:{:.6}\r\nused_cpu_user:{:.6}\r\n", ticks(12), ticks(11))),
        ("Modules", String::new()),
        ("Errorstats", String::new()),
        ("Cluster", "cluster_enabled:0\r\n".to_owned()),
        ("Keyspace", keyspace),
    ];
    let everything =
        words.len() == 1 || words[1..].iter().any(|w| ["all", "default", "everything"].iter().any(|e| is(w, e)));
    let wanted = |name: &str| everything || words[1..].iter().any(|word| is(word, name));
    let texts: Vec<_> =
        sections.iter().filter(|(name, _)| wanted(name)).map(|(name, text)| format!("# {name}\r\n{text}")).collect();
    reply.verbatim(&texts.join("\r\n"));
    Ok(())
}
