//! An address book in a pool.
//!
//! ```console
//! $ cargo run -p nearpm --example address_book -- people.pool add "Ada Lovelace" ada@example.org
//! $ cargo run -p nearpm --example address_book -- people.pool list A
//! Ada Lovelace <ada@example.org>
//! ```

use std::io::Write;
use std::ops::Bound;

use nearpm::prelude::*;

/// What the pool holds.
#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Book {
    /// By name.
    people: PBTreeMap<PString, Person>,
    /// Names of those who were looked up last, the newest at the end.
    recent: PQueue<PString>,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Person {
    address: PString,
    /// How often they were looked up.
    asked: u64,
}

/// Names that are remembered.
const RECENT: u64 = 5;

fn add(tx: &mut impl Store, book: Ptr<Book>, name: &str, address: &str) -> Result<(), Error> {
    let person = Person { address: PString::with(tx, address)?, asked: 0 };
    if let Some(before) = book.people().insert(tx, name, person)? {
        before.release(tx)?;
    }
    Ok(())
}

fn remove(tx: &mut impl Store, book: Ptr<Book>, name: &str) -> Result<(), Error> {
    let person = book.people().remove(tx, name)?.ok_or_else(|| unknown(name))?;
    person.release(tx)
}

/// The address of somebody; remembers that it was asked for.
fn find(tx: &mut impl Store, book: Ptr<Book>, name: &str) -> Result<String, Error> {
    let person = book.people().slot(tx, name)?.ok_or_else(|| unknown(name))?;
    tx.update(person.asked(), |asked| asked + 1)?;
    let name = PString::with(tx, name)?;
    book.recent().push(tx, name)?;
    if book.recent().len(tx)? > RECENT
        && let Some(oldest) = book.recent().pop(tx)?
    {
        oldest.release(tx)?;
    }
    person.address().read(tx)
}

fn list(from: &impl Load, book: Ptr<Book>, prefix: &str, out: &mut impl Write) -> Result<(), Error> {
    for entry in book.people().range(from, (Bound::Included(prefix), Bound::Unbounded))? {
        let (name, person) = entry?;
        if !name.starts_with(prefix) {
            break;
        }
        say(out, &format!("{name} <{}>", person.address.read(from)?))?;
    }
    Ok(())
}

fn recent(from: &impl Load, book: Ptr<Book>, out: &mut impl Write) -> Result<(), Error> {
    book.recent().iter(from)?.try_for_each(|name| say(out, &name?.read(from)?))
}

fn unknown(name: &str) -> Error {
    Error::abort(format!("nobody is called {name:?}"))
}

fn say(out: &mut impl Write, line: &str) -> Result<(), Error> {
    writeln!(out, "{line}").map_err(Error::abort)
}

/// Does what a command says.
pub fn run(arguments: &[&str], out: &mut impl Write) -> Result<(), Error> {
    let [path, command @ ..] = arguments else { return Err(usage()) };
    let pool = DirectPool::open_or_create(path, 1 << 20, &Options::new())?;
    let book = pool.tx(|tx| tx.root_or_zeroed::<Book>())?;
    match command {
        ["add", name, address] => pool.tx(|tx| add(tx, book, name, address))?,
        ["remove", name] => pool.tx(|tx| remove(tx, book, name))?,
        ["find", name] => say(out, &pool.tx(|tx| find(tx, book, name))?)?,
        ["list"] => pool.read(|from| list(from, book, "", out))?,
        ["list", prefix] => pool.read(|from| list(from, book, prefix, out))?,
        ["recent"] => pool.read(|from| recent(from, book, out))?,
        _ => return Err(usage()),
    }
    pool.close()
}

fn usage() -> Error {
    Error::abort("address_book POOL add NAME ADDRESS | remove NAME | find NAME | list [PREFIX] | recent")
}

#[allow(dead_code, reason = "the test of this example calls `run`")]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments, &mut std::io::stdout()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
