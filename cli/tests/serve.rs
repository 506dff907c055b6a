//! `nearpm serve` on a pool that lies on a card.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Parser;
use nearpm_cards::{Rig, SimulatedCard};
use nearpm_driver::Posting;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_serve::{Options, Server, redis::Redis, start_redis};
use nearpm_sim::host::Parameters;

/// Bytes of the pool.
const BYTES: u64 = 4 << 20;
/// How long an answer may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A server's arguments.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    options: Options,
}

fn options(pool: &str, durability: &str) -> Vec<String> {
    let bytes = BYTES.to_string();
    let all = ["--pool", pool, "--bytes", &bytes, "--listen", "127.0.0.1:0", "--durability", durability];
    all.map(str::to_owned).to_vec()
}

/// A client that sends words and reads lines.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        Client(BufReader::new(stream))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn set(&mut self, key: &str, value: &str) -> String {
        write!(self.0.get_mut(), "SET {key} {value}\r\n").unwrap();
        self.line()
    }

    /// The value of a key; empty where there is none.
    fn get(&mut self, key: &str) -> String {
        write!(self.0.get_mut(), "GET {key}\r\n").unwrap();
        if self.line() == "$-1" { String::new() } else { self.line() }
    }
}

fn start(name: &str, durability: &str) -> Server<Redis> {
    let words = [vec!["serve".to_owned()], options(&format!("card:{name}/cache"), durability)].concat();
    start_redis(Arguments::parse_from(words).options).unwrap()
}

/// Keys and values of a life.
fn pairs(life: u64) -> impl Iterator<Item = (String, String)> {
    (0..40).map(move |n| (format!("key{}", n + 20 * life), format!("value{life}-{n}")))
}

#[test]
fn what_a_client_was_told_is_on_the_card_after_power_cuts() {
    for durability in ["durable", "group"] {
        let (name, parameters) = (format!("serve-{durability}"), Parameters::default());
        let cards = SimulatedCard::Model.cards(MemoryPorts::One).unwrap();
        let rig = Rig::new(cards, &name, parameters, Posting::default(), BYTES);
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        for life in 0..4 {
            let _card = rig.open_card().unwrap();
            let server = start(&name, durability);
            let mut client = Client::connect(server.address());
            for (key, value) in &model {
                assert_eq!(client.get(key), *value, "{durability}, life {life}, {key}");
            }
            for (key, value) in pairs(life) {
                assert_eq!(client.set(&key, &value), "+OK");
                model.insert(key, value);
            }
            // Every second life ends in order before its power is cut.
            let is_stopped = life % 2 == 1;
            if is_stopped {
                server.stop().unwrap();
                rig.cut(None, parameters.save_cycles, life);
            } else {
                rig.cut(None, parameters.save_cycles, life);
                assert_ne!(client.set("late", "value"), "+OK", "nothing can be durable without power");
                assert!(server.failed(TIMEOUT).is_some(), "the server goes on without its card");
                drop(server);
            }
            rig.power_up();
        }
    }
}

/// A process that is not left behind.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_program_serves_a_pool_on_an_attached_card_and_ends_in_order() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nearpm"));
    command.args(["--attach", "sim=model", "serve", "redis"]).args(options("card:sim/cache", "group"));
    let mut process = Process(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let address = ready.trim().strip_prefix("ready at ").unwrap_or_else(|| panic!("{ready:?}"));
    let mut client = Client::connect(address.parse().unwrap());
    assert_eq!(client.set("greeting", "hello"), "+OK");
    assert_eq!((client.get("greeting"), client.get("other")), ("hello".to_owned(), String::new()));
    // SAFETY: the process is a child that was not waited for, so that the number is its own.
    assert_eq!(unsafe { libc::kill(process.0.id() as i32, libc::SIGTERM) }, 0);
    assert!(process.0.wait().unwrap().success());
}
