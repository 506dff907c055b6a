//! `nearpm card selftest`: what a card has to do, tried in a pool of its own.

use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use nearpm::{Engine, Mechanism, Options, Pool};
use nearpm_interface::registers as reg;

use super::transport::Opened;

/// Bytes of the pool.
const POOL_BYTES: u64 = 1 << 20;
/// Bytes of the object that is written.
const OBJECT_BYTES: u64 = 1024;
/// How long an interrupt may take.
const INTERRUPT_NS: u64 = 5_000_000_000;

/// Tries everything; says what was tried.
///
/// # Errors
/// The first thing that does not work. The pool is removed then, too, if the card lets it be.
pub fn run(opened: &Opened) -> Result<String> {
    let mut text = String::new();
    writeln!(text, "{}", opened.what)?;
    let card = &opened.card;
    ensure!(card.registers().read(reg::ID) == reg::ID_VALUE, "the identity register is wrong");
    let number = card.registers().read(reg::DEVICE_NUMBER);
    card.registers().write(reg::DEVICE_NUMBER, number ^ 5);
    let written = card.registers().read(reg::DEVICE_NUMBER);
    card.registers().write(reg::DEVICE_NUMBER, number);
    ensure!(written == number ^ 5, "a register does not keep what was written");
    writeln!(text, "registers              pass")?;
    for mechanism in [Mechanism::Undo, Mechanism::Redo, Mechanism::Checkpoint, Mechanism::Shadow] {
        let name = format!("selftest-{}", std::process::id());
        let location = opened.location(&name);
        let tried = try_mechanism(&location, mechanism);
        let removed = nearpm::remove(&location);
        tried.with_context(|| format!("{} on the card", mechanism.name()))?;
        removed.context("its pool cannot be removed")?;
        writeln!(text, "{:<22} pass", mechanism.name())?;
    }
    writeln!(text, "interrupts             {}", try_interrupts(opened)?)?;
    Ok(text)
}

fn options(mechanism: Mechanism) -> Options {
    Options::new().mechanism(mechanism).engine(Engine::Card).lanes(1).ring_bytes(64 << 10)
}

fn check(pool: &Pool, object: u64, expected: u8) -> Result<()> {
    let mut found = vec![0; OBJECT_BYTES as usize];
    pool.tx(|tx| tx.read(object, &mut found))?;
    ensure!(found.iter().all(|&byte| byte == expected), "the object does not hold {expected:#04x}");
    Ok(())
}

/// One transaction commits, one is given up, and the pool is opened again.
fn try_mechanism(location: &str, mechanism: Mechanism) -> Result<()> {
    let pool = options(mechanism).create(location, POOL_BYTES)?;
    let fill = |value: u8| vec![value; OBJECT_BYTES as usize];
    let object = pool.tx(|tx| {
        let object = tx.alloc(OBJECT_BYTES)?;
        tx.write(object, &fill(0x11))?;
        tx.set_root(object)?;
        Ok(object)
    })?;
    pool.tx(|tx| tx.write(object, &fill(0x22)))?;
    check(&pool, object, 0x22)?;
    let given_up: Result<(), nearpm::Error> = pool.tx(|tx| {
        tx.write(object, &fill(0x33))?;
        Err(nearpm::Error::abort("tried"))
    });
    ensure!(given_up.is_err(), "a transaction that was given up has committed");
    check(&pool, object, 0x22)?;
    ensure!(pool.statistics().commands > 0, "the card was not asked for anything");
    pool.close()?;
    let pool = options(mechanism).open(location)?;
    check(&pool, pool.root()?, 0x22)?;
    Ok(pool.close()?)
}

/// Whether the completion of a command signals its vector: that of its page, or the only one.
fn try_interrupts(opened: &Opened) -> Result<&'static str> {
    let function = opened.card.function();
    let vectors = function.interrupt_vectors();
    if vectors == 0 {
        return Ok("none on this transport");
    }
    let mapping = super::bench::mapping(&opened.card);
    opened.card.map_pool(mapping)?;
    // What the commands of before have signalled.
    while function.wait_interrupt(0, 0)? {}
    let ticket = opened.card.post(0, super::bench::fence(&mapping), true)?;
    let signalled = function.wait_interrupt(0, INTERRUPT_NS)?;
    opened.card.wait(ticket)?;
    opened.card.unmap_pool(mapping.pool, mapping.thread)?;
    ensure!(signalled, "no interrupt came within {INTERRUPT_NS} ns of a completion record");
    Ok("pass")
}
