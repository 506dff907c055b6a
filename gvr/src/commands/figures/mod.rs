//! The paper's figures 5 to 13 by the model of a network ([`crate::rma::net`]), beside what its
//! text says.
//!
//! Everything that is printed here is virtual time. Each program's result is compared between the
//! layouts before a figure is printed.
//!
//! | file | figures |
//! |---|---|
//! | `micro.rs` | 5, 6 and 7: single operations, `version_inc` |
//! | `synthetic.rs` | 9: the synthetic workload |
//! | `applications.rs` | 10 to 13: three programs, with slower storage, and the memory of old versions |
//! | `table.rs` | how a figure is printed |

mod applications;
mod micro;
mod synthetic;
mod table;

use std::process::ExitCode;

use clap::Args;

use crate::array::{Access, Keep, Options, Protocol};
use crate::error::{Error, Result};
use crate::rma::net::{self, NANO, Network, Profile, Ran};
use crate::world::World;
use table::Table;

#[derive(Args)]
pub struct FiguresArguments {
    /// The network and its nodes
    #[arg(long, value_enum, default_value_t = Network::Fdr10)]
    network: Network,
    /// Nanoseconds of latency, instead of the network's
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    latency_ns: Option<u64>,
    /// MB/s of a link, instead of the network's
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    link_mbs: Option<u64>,
    /// Nanoseconds of an atomic at its target, instead of the network's
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    atomic_ns: Option<u64>,
    /// Only this figure
    #[arg(long, value_parser = clap::value_parser!(u64).range(5..=13))]
    only: Option<u64>,
    /// Up to 64 ranks and larger programs: some ten minutes instead of one or two
    #[arg(long)]
    full: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl FiguresArguments {
    fn profile(&self) -> Profile {
        let named = self.network.profile();
        Profile {
            latency: self.latency_ns.map_or(named.latency, |ns| ns * NANO),
            byte_millis: self.link_mbs.map_or(named.byte_millis, |mbs| 1_000_000_000 / mbs),
            atomic: self.atomic_ns.map_or(named.atomic, |ns| ns * NANO),
            ..named
        }
    }

    fn wants(&self, figure: u64) -> bool {
        self.only.is_none_or(|only| only == figure)
    }
}

/// An array that is compared.
#[derive(Clone, Copy)]
struct Contender {
    options: Options,
}

/// Flat, the paper's log and ours. The paper's is not cleaned: its log has room for `log_blocks`.
fn contenders(block: u64, keep: u64, log_blocks: u64) -> [Contender; 3] {
    let kept = |options: Options| Options { keep: Keep::Last(keep), check: false, ..options };
    let paper = Options { protocol: Protocol::Paper, log_blocks, ..kept(Options::log(block)) };
    [
        Contender { options: kept(Options::flat()) },
        Contender { options: paper },
        Contender { options: kept(Options::log(block)) },
    ]
}

fn by_messages(contender: Contender) -> Contender {
    Contender { options: Options { access: Access::Message, ..contender.options } }
}

/// Runs a program on ranks in virtual time.
fn on_net<T: Send>(
    ranks: usize,
    window: u64,
    profile: Profile,
    body: impl Fn(&World) -> Result<T> + Sync,
) -> Result<(Vec<T>, Ran)> {
    let (given, ran) = net::run(ranks, window, profile, |net| body(&World::new(net)))?;
    Ok((given.into_iter().collect::<Result<_>>()?, ran))
}

/// Refuses to print a figure of programs that did not do the same.
fn assert_same(what: &str, digests: &[u32]) -> Result<()> {
    if digests.windows(2).all(|two| two[0] == two[1]) {
        return Ok(());
    }
    Err(Error::option(format!("{what}: the layouts do not give the same array: no figure is printed")))
}

pub fn command(arguments: &FiguresArguments) -> Result<ExitCode> {
    let profile = arguments.profile();
    let mut tables = Vec::new();
    let mut show = |table: Table| {
        if !arguments.json {
            println!("{table}");
        }
        tables.push(table);
    };
    if !arguments.json {
        println!("Virtual time of a model, not measured: {:?}, {profile:?} (picoseconds)\n", arguments.network);
    }
    if arguments.wants(5) {
        show(micro::latencies(profile)?);
    }
    if arguments.wants(6) {
        show(micro::bandwidths(profile)?);
    }
    if arguments.wants(7) {
        show(micro::versions(profile, arguments.full)?);
    }
    if arguments.wants(9) {
        synthetic::figures(profile, arguments.full)?.into_iter().for_each(&mut show);
    }
    let programs = (10..=13).filter(|figure| arguments.wants(*figure)).collect::<Vec<_>>();
    if !programs.is_empty() {
        applications::figures(profile, arguments.full, &programs)?.into_iter().for_each(&mut show);
    }
    if arguments.json {
        let figures: Vec<_> = tables.iter().map(Table::json).collect();
        let made_by = format!("virtual time of a model: {:?}, {profile:?} (picoseconds)", arguments.network);
        println!("{:#}", serde_json::json!({"made_by": made_by, "figures": figures}));
    }
    Ok(ExitCode::SUCCESS)
}
