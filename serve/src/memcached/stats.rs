//! What the server tells about itself.

use nearpm::prelude::*;

use super::cache::Cache;
use super::classic::line;
use super::{Memcached, VERSION};
use crate::tally::of;

/// stats [settings|items|slabs|sizes|conns|detail|reset]
pub fn stats(
    memcached: &Memcached,
    cache: &Cache<'_>,
    from: &impl Load,
    what: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let (options, totals) = (&memcached.options, &memcached.totals);
    let limit = options.memory_limit.unwrap_or(options.bytes);
    let rows: Vec<(&str, String)> = match what {
        b"" => vec![
            ("pid", std::process::id().to_string()),
            ("uptime", memcached.started.elapsed().as_secs().to_string()),
            ("time", (cache.now_ms() / 1000).to_string()),
            ("version", VERSION.to_owned()),
            ("nearpm_version", env!("CARGO_PKG_VERSION").to_owned()),
            ("nearpm_durability", format!("{:?}", options.durability).to_lowercase()),
            ("pointer_size", usize::BITS.to_string()),
            ("max_connections", options.network.max_clients.to_string()),
            ("curr_connections", of(&totals.clients).to_string()),
            ("total_connections", of(&totals.accepted).to_string()),
            ("rejected_connections", of(&totals.refused).to_string()),
            ("cmd_get", of(&totals.gets).to_string()),
            ("cmd_set", of(&totals.sets).to_string()),
            ("get_hits", of(&totals.hits).to_string()),
            ("get_misses", of(&totals.gets).saturating_sub(of(&totals.hits)).to_string()),
            ("limit_maxbytes", limit.to_string()),
            ("threads", options.threads.to_string()),
            ("bytes", cache.keys.bytes(from)?.to_string()),
            ("curr_items", cache.keys.len(from)?.to_string()),
            ("evictions", of(&totals.evictions).to_string()),
            ("reclaimed", of(&totals.expired).to_string()),
        ],
        b"settings" => vec![
            ("maxbytes", limit.to_string()),
            ("maxconns", options.network.max_clients.to_string()),
            ("evictions", if memcached.evicts() { "on" } else { "off" }.to_owned()),
            ("num_threads", options.threads.to_string()),
            ("item_size_max", options.max_value.to_string()),
            ("cas_enabled", "yes".to_owned()),
            ("binding_protocol", "ascii".to_owned()),
        ],
        // There are no slabs to tell of.
        b"items" | b"slabs" | b"sizes" | b"conns" => Vec::new(),
        _ if what.starts_with(b"detail") => {
            memcached.detail.run(what.strip_prefix(b"detail ").unwrap_or_default(), out);
            return Ok(());
        }
        b"reset" => {
            totals.reset();
            memcached.detail.reset();
            line(out, "RESET");
            return Ok(());
        }
        _ => {
            line(out, "ERROR");
            return Ok(());
        }
    };
    rows.iter().for_each(|(name, value)| line(out, &format!("STAT {name} {value}")));
    line(out, "END");
    Ok(())
}
