//! Access by messages (paper, III-D2): a server, which is a thread of each rank, does everything on
//! its rank's part.
//!
//! Requests and answers lie in the windows. A rank has one request on its way at a time; larger
//! ones are cut into pieces. The server does what a client would have done by one-sided operations,
//! by the same code, on its own window. It ends with the array, when all ranks give it back, or
//! else with its rank: whoever still asks it then gets [`Error::DeadRank`].
//!
//! | part of a window | bytes | |
//! |---|---|---|
//! | bell of the server | 64 | changes with every request |
//! | bell of the client | 64 | changes with every answer |
//! | answers | 64 | how many this rank has got |
//! | end | 64 | not 0: the server has ended |
//! | answer | 64 and a piece | the last one |
//! | requests | 8 a rank | how many each rank has sent |
//! | request | 64 and a piece, for each rank | its last one |

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::core::{Change, Core, Reach};
use super::geometry::OPENED;
use crate::error::{Error, Result};
use crate::rma::{Helper, Kind, Op, Place, Rma};

/// Most bytes of data of a message: the server's buffer for large requests.
const PIECE: u64 = 1 << 14;
/// Words of the head of a message.
const HEAD: usize = 8;
const HEAD_BYTES: u64 = 8 * HEAD as u64;

const SERVER_BELL: u64 = 0;
const CLIENT_BELL: u64 = 64;
const ANSWERS: u64 = 128;
const END: u64 = 192;
const ANSWER: u64 = 256;
const REQUESTS: u64 = ANSWER + HEAD_BYTES + PIECE;

const READ: u64 = 1;
const PUT: u64 = 2;
const COMBINE: u64 = 3;
const SWAP: u64 = 4;

/// A rank's side of the mail, as a client.
struct Mail {
    /// Offset in every window.
    at: u64,
    answers: Cell<u64>,
    buffer: RefCell<Vec<u8>>,
}

/// A request's head, by its words.
type Head = [u64; HEAD];

impl Mail {
    /// Takes its space; all ranks call it.
    fn new(rma: &dyn Rma) -> Result<Mail> {
        let mail = Mail { at: 0, answers: Cell::new(0), buffer: RefCell::default() };
        Ok(Mail { at: rma.alloc(mail.bytes(rma.ranks()))?, ..mail })
    }

    fn bytes(&self, ranks: usize) -> u64 {
        request(ranks, ranks)
    }

    /// Sends a request to a rank's server, waits for the answer, and gives a word of it.
    fn ask(&self, rma: &dyn Rma, rank: usize, head: Head, sent: &[u8], got: &mut [u8]) -> Result<u64> {
        let (me, ranks) = (rma.rank(), rma.ranks());
        let mut bell = rma.load(Place { rank: me, offset: self.at + CLIENT_BELL })?;
        let mut message = self.buffer.borrow_mut();
        message.clear();
        message.extend_from_slice(bytemuck::cast_slice(&head));
        message.extend_from_slice(sent);
        let to = Place { rank, offset: self.at + request(me, ranks) };
        rma.deliver(to, &message, self.at + REQUESTS + 8 * me as u64, self.at + SERVER_BELL)?;
        let wanted = self.answers.get() + 1;
        while rma.load(Place { rank: me, offset: self.at + ANSWERS })? != wanted {
            bell = rma.wait_word(self.at + CLIENT_BELL, bell)?;
        }
        self.answers.set(wanted);
        let answer = Place { rank: me, offset: self.at + ANSWER };
        let mut said = [0_u64; HEAD];
        rma.get(answer, bytemuck::cast_slice_mut(&mut said))?;
        match said[0] {
            0 => rma.get(answer.plus(HEAD_BYTES), got).map(|()| said[1]),
            _ if said[0] == Error::LOG_FULL => {
                Err(Error::LogFull { rank, needed: said[1], free: said[2], capacity: said[3] })
            }
            code => Err(Error::of_code(code, rank)),
        }
    }
}

/// Where a rank's request lies in the mail.
fn request(client: usize, ranks: usize) -> u64 {
    REQUESTS + (8 * ranks as u64).next_multiple_of(64) + client as u64 * (HEAD_BYTES + PIECE)
}

/// An operation and the kind of its elements, in a word.
fn pack(kind: Kind, op: Op) -> u64 {
    let op = Op::ALL.iter().position(|known| *known == op).unwrap_or(0) as u64;
    kind as u64 | op << 32
}

fn unpack(word: u64) -> Result<(Kind, Op)> {
    let op = Op::ALL.get((word >> 32) as usize).copied();
    let op = op.ok_or_else(|| Error::option(format!("a request names no operation: {word:#x}")))?;
    Ok((Kind::of_code(word as u32)?, op))
}

/// Access by messages: the mail, and the server of this rank.
pub(super) struct Served {
    mail: Mail,
    server: RefCell<Option<Server>>,
}

impl Served {
    /// Takes the space of messages, and starts the server of an array; all ranks call it.
    pub fn start(core: &Core) -> Result<Served> {
        let mail = Mail::new(&*core.rma)?;
        let server = RefCell::new(Some(Server::start(core, mail.at)?));
        Ok(Served { mail, server })
    }
}

impl Reach for Served {
    fn change(&self, core: &Core, rank: usize, at: u64, data: &[u8], change: Change) -> Result<()> {
        for (piece, at) in data.chunks(PIECE as usize).zip((at..).step_by(PIECE as usize)) {
            let head = match change {
                Change::Put => [PUT, at, piece.len() as u64, 0, 0, 0, 0, 0],
                Change::Combine(kind, op) => [COMBINE, at, piece.len() as u64, pack(kind, op), 0, 0, 0, 0],
            };
            self.mail.ask(&*core.rma, rank, head, piece, &mut [])?;
        }
        Ok(())
    }

    fn read(&self, core: &Core, rank: usize, at: u64, data: &mut [u8]) -> Result<()> {
        for (piece, at) in data.chunks_mut(PIECE as usize).zip((at..).step_by(PIECE as usize)) {
            self.mail.ask(&*core.rma, rank, [READ, at, piece.len() as u64, 0, 0, 0, 0, 0], &[], piece)?;
        }
        Ok(())
    }

    fn swap(&self, core: &Core, rank: usize, at: u64, expected: u64, new: u64) -> Result<u64> {
        self.mail.ask(&*core.rma, rank, [SWAP, at, 8, 0, expected, new, 0, 0], &[], &mut [])
    }

    fn end(&self, core: &Core) -> Result<()> {
        let Some(server) = self.server.borrow_mut().take() else { return Ok(()) };
        // Nobody asks it any more.
        core.rma.barrier()?;
        server.end(&*core.rma, &self.mail)?;
        core.rma.free(self.mail.at, self.mail.bytes(core.rma.ranks()))
    }
}

impl Core {
    /// What the owner has told its server of its log.
    fn learn_opened(&self) -> Result<()> {
        if !self.is_log() {
            return Ok(());
        }
        let mut opened = [0; 2];
        self.rma.load_many(self.place(self.me(), OPENED), &mut opened)?;
        let peer = &mut self.state.borrow_mut().peers[self.rma.rank()];
        [peer.tail, peer.head] = opened;
        Ok(())
    }

    /// Does what a request says. `data` is what was sent, and becomes what is answered.
    fn serve(&self, head: &Head, data: &mut Vec<u8>) -> Result<u64> {
        let me = self.me();
        let [what, at, bytes, kind_op, expected, new, ..] = *head;
        let inside = at.checked_add(bytes).is_some_and(|end| end <= self.shape.part_bytes()) && bytes <= PIECE;
        if !inside {
            return Err(Error::option(format!("a request for {bytes} bytes at {at} leaves the part of rank {me}")));
        }
        self.learn_opened()?;
        let mut value = 0;
        match what {
            READ => {
                data.resize(bytes as usize, 0);
                return self.read_run(me, at, data).map(|()| 0);
            }
            PUT => self.change_run(me, at, data, Change::Put)?,
            COMBINE => {
                let (kind, op) = unpack(kind_op)?;
                self.change_run(me, at, data, Change::Combine(kind, op))?;
            }
            SWAP => value = self.swap_at(me, at, expected, new)?,
            _ => return Err(Error::option(format!("{what} is no request"))),
        }
        data.clear();
        self.rma.flush(me)?;
        Ok(value)
    }
}

/// A rank's server, as its owner sees it.
struct Server {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Starts the server of an array.
    fn start(core: &Core, mail: u64) -> Result<Server> {
        let helper: Helper = core.rma.helper()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (shape, kind, geometry, base) = (core.shape.clone(), core.kind, core.geometry, core.base);
        let (options, stopped) = (core.options, Arc::clone(&stop));
        let body = move || {
            let rma: Box<dyn Rma> = helper;
            let core = Core::over(Rc::from(rma), shape, kind, options, geometry, base);
            // Its clients find out by themselves that the rank is gone.
            let _ = run(&core, mail, &stopped);
        };
        let builder = std::thread::Builder::new().name("gvr-server".to_owned());
        let thread = builder.spawn(body).map_err(Error::io("start the server thread of a rank"))?;
        Ok(Server { thread: Some(thread), stop })
    }

    /// Ends it, when nobody asks it any more.
    fn end(mut self, rma: &dyn Rma, mail: &Mail) -> Result<()> {
        self.stop.store(true, Ordering::Release);
        let own = |offset| Place { rank: rma.rank(), offset: mail.at + offset };
        rma.deliver(own(CLIENT_BELL + 8), &[], mail.at + CLIENT_BELL + 16, mail.at + SERVER_BELL)?;
        rma.wait_word(mail.at + END, 0)?;
        // All it has to do from here on is to end.
        self.thread.take().map_or(Ok(()), JoinHandle::join).map_err(|_| Error::option("a server has panicked"))
    }
}

/// Serves until it is told to stop.
fn run(core: &Core, mail: u64, stop: &AtomicBool) -> Result<()> {
    let (rma, ranks) = (&*core.rma, core.rma.ranks());
    let own = |offset| Place { rank: core.me(), offset: mail + offset };
    let mut served = vec![0; ranks];
    let (mut sent, mut data, mut reply) = (vec![0; ranks], Vec::new(), Vec::new());
    loop {
        let bell = rma.load(own(SERVER_BELL))?;
        if stop.load(Ordering::Acquire) {
            rma.deliver(own(END + 8), &[], mail + END + 16, mail + END)?;
            return rma.flush(core.me());
        }
        rma.load_many(own(REQUESTS), &mut sent)?;
        let waiting: Vec<usize> = (0..ranks).filter(|&client| sent[client] != served[client]).collect();
        for &client in &waiting {
            served[client] += 1;
            let mut head: Head = [0; HEAD];
            rma.get(own(request(client, ranks)), bytemuck::cast_slice_mut(&mut head))?;
            data.resize(if head[0] == READ || head[0] == SWAP { 0 } else { head[2].min(PIECE) as usize }, 0);
            rma.get(own(request(client, ranks) + HEAD_BYTES), &mut data)?;
            let said = match core.serve(&head, &mut data) {
                Ok(value) => [0, value, 0, 0, 0, 0, 0, 0],
                Err(error @ (Error::Stopped { .. } | Error::DeadRank { .. })) => return Err(error),
                Err(error) => {
                    data.clear();
                    refusal(&error)
                }
            };
            reply.clear();
            reply.extend_from_slice(bytemuck::cast_slice(&said));
            reply.extend_from_slice(&data);
            let to = Place { rank: client, offset: mail + ANSWER };
            rma.deliver(to, &reply, mail + ANSWERS, mail + CLIENT_BELL)?;
        }
        if waiting.is_empty() {
            wait(rma, mail, bell, stop)?;
        }
    }
}

/// Waits for the bell.
fn wait(rma: &dyn Rma, mail: u64, bell: u64, stop: &AtomicBool) -> Result<()> {
    let waited = rma.wait_word(mail + SERVER_BELL, bell);
    if stop.load(Ordering::Acquire) { Ok(()) } else { waited.map(drop) }
}

/// The head of an answer that says what went wrong.
fn refusal(error: &Error) -> Head {
    match *error {
        Error::LogFull { needed, free, capacity, .. } => [error.code(), needed, free, capacity, 0, 0, 0, 0],
        _ => [error.code(), 0, 0, 0, 0, 0, 0, 0],
    }
}
