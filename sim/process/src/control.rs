//! The control socket: the card's power, and what test benches do to the link.
//!
//! One command a line, one line as the answer: `ok`, with values where there are some, or `error`
//! and why.
//!
//! | command | does |
//! |---|---|
//! | `cut [seed=N] [save=N]` | cuts the power now; the save has energy for so many cycles |
//! | `cut-at cycle=N [seed=N] [save=N]` | the same when the card reaches a cycle since its power-up |
//! | `power-up` | brings the power back; clients connect again |
//! | `statistics` | cycle, state and counters |
//! | `freeze`, `thaw` | nothing is answered until then |
//! | `pause`, `resume` | the card's time passes with accesses alone until then |
//! | `unplug`, `plug` | all ones are read until then |
//! | `lose-interrupts N` | the next N interrupts do not arrive |
//! | `revoke` | takes all host memory away from the card |
//! | `quit` | ends the process as SIGKILL would |

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};

use crate::device::Shared;
use crate::engine::{AMPLE_CYCLES, Cut, Engine};

/// Answers on the control socket. Never returns.
pub fn serve(shared: &Arc<Shared>, listener: &UnixListener) {
    for stream in listener.incoming().flatten() {
        let shared = shared.clone();
        std::thread::spawn(move || converse(&shared, &stream));
    }
}

/// Makes the control socket, also where a process that ended has left one.
pub fn listen(path: &Path) -> Result<UnixListener> {
    ensure!(UnixStream::connect(path).is_err(), "{} is in use by another process", path.display());
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path).with_context(|| format!("cannot listen on {}", path.display()))
}

/// Sends a command and gives the values of the answer.
///
/// # Errors
/// What the simulator says, or why it does not.
pub fn request(path: &Path, command: &str) -> Result<String> {
    let named = || format!("control socket {}", path.display());
    let mut stream = UnixStream::connect(path).with_context(named)?;
    writeln!(stream, "{command}").with_context(named)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).with_context(named)?;
    match answer.trim_end().split_once(' ').unwrap_or((answer.trim_end(), "")) {
        ("ok", values) => Ok(values.to_owned()),
        ("error", why) => bail!("{why}"),
        _ => bail!("control socket {}: the simulator ended without an answer", path.display()),
    }
}

fn converse(shared: &Shared, stream: &UnixStream) {
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let answer = match obey(shared, &line) {
            Ok(values) => format!("ok {values}"),
            Err(error) => format!("error {error:#}"),
        };
        let mut stream = stream;
        if writeln!(stream, "{}", answer.trim_end()).is_err() {
            return;
        }
    }
}

/// `KEY=N` pairs, all of which are known.
fn arguments<'a>(words: impl Iterator<Item = &'a str>, known: &[&str]) -> Result<BTreeMap<&'a str, u64>> {
    let pair = |word: &'a str| {
        let (key, value) = word.split_once('=').with_context(|| format!("{word:?} is no KEY=N"))?;
        ensure!(known.contains(&key), "{key:?} is unknown here");
        Ok((key, value.parse().with_context(|| format!("{value:?} is no number"))?))
    };
    words.map(pair).collect()
}

fn obey(shared: &Shared, line: &str) -> Result<String> {
    let mut words = line.split_whitespace();
    let command = words.next().context("no command")?;
    match command {
        "cut" | "cut-at" => {
            let found = arguments(words, &["cycle", "seed", "save"])?;
            let of = |key, or| found.get(key).copied().unwrap_or(or);
            let (seed, save_cycles) = (of("seed", 0), of("save", AMPLE_CYCLES));
            let mut engine = shared.engine();
            ensure!(engine.is_powered(), "the power is off");
            match (command, found.get("cycle")) {
                ("cut", None) => engine.cut(save_cycles, seed),
                ("cut-at", Some(&cycle)) => engine.arm(Cut { cycle, save_cycles, seed }),
                _ => bail!("cut takes no cycle, and cut-at needs one"),
            }
        }
        "power-up" => shared.engine().power_up()?,
        "statistics" => return Ok(statistics(&mut shared.engine())),
        "freeze" => shared.set_link(|link| link.frozen = true),
        "thaw" => shared.set_link(|link| link.frozen = false),
        "pause" => shared.set_paused(true),
        "resume" => shared.set_paused(false),
        "unplug" => shared.set_link(|link| link.unplugged = true),
        "plug" => {
            shared.set_link(|link| link.unplugged = false);
            // Who was connected lost accesses, and has to begin again.
            shared.engine().life += 1;
        }
        "lose-interrupts" => {
            let count = words.next().context("how many?")?;
            shared.engine().bus.lose_interrupts = count.parse().with_context(|| format!("{count:?} is no number"))?;
        }
        "revoke" => shared.engine().bus.revoke(),
        "quit" => std::process::exit(0),
        _ => bail!("{command:?} is no command"),
    }
    Ok(String::new())
}

fn statistics(engine: &mut Engine) -> String {
    let (counters, powered) = (engine.counters, u8::from(engine.is_powered()));
    let bus = &engine.bus;
    let mut text = format!(
        "powered={powered} idle={} cycle={} life={} journalled={} replayed={} compactions={} cuts={} unanswered={} \
         resets_under_way={} records={} faults={} interrupts={}",
        u8::from(engine.is_idle()),
        engine.cycle(),
        engine.life,
        counters.journalled,
        counters.replayed,
        counters.compactions,
        counters.cuts,
        counters.unanswered,
        counters.resets_under_way,
        bus.records,
        bus.faults,
        bus.interrupts,
    );
    if let Some(why) = &engine.broken {
        text += &format!(" broken={why:?}");
    }
    text
}
