//! The servers as clients see them: our own minimal ones always, the real ones where they are
//! installed.

mod access;
mod client;
mod clients;
mod differential;
mod keys;
mod kills;
mod memcached;
mod operation;
mod process;
mod redis;
mod redis_channels;
mod redis_commands;
mod redis_dumps;
mod redis_edges;
mod redis_protocol;
mod redis_sharing;
mod redis_users;
mod refused;
mod space;
mod starts;
mod stock;
mod torn;
mod ycsb;
mod ycsb_latencies;
