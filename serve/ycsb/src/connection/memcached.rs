//! memcached's text protocol, as much of it as is needed: `get`, `set` and `replace`.
//!
//! This is our own because the kept client (`memcache`) does not tell an update that found its
//! record from one that did not (`NOT_STORED`), asks for the version before each command, and sends
//! a command in several packets: its own time would be measured.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Connection, Failure, PATIENCE};
use crate::record::Fields;

/// Bytes of a line of an answer: a key of 250 bytes and numbers, or an error.
const LONGEST_LINE: u64 = 2048;
/// Bytes of a value. No server has larger ones (`-I` of memcached ends at 1 GiB).
const LARGEST_VALUE: usize = 1 << 30;

/// A connection, over anything that is read and written.
pub struct Memcached<S> {
    stream: BufReader<S>,
}

impl Memcached<TcpStream> {
    pub fn connect(address: SocketAddr) -> Result<Memcached<TcpStream>, Failure> {
        let connect = || {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        connect().map(|stream| Memcached { stream: BufReader::new(stream) }).map_err(|error| Failure::lost(&error))
    }
}

impl<S: Read + Write> Memcached<S> {
    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.get_mut().write_all(bytes).map_err(|error| Failure::lost(&error))
    }

    /// A line without its end.
    fn line(&mut self) -> Result<String, Failure> {
        let mut line = Vec::new();
        let read = self.stream.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        read.map_err(|error| Failure::lost(&error))?;
        if line.is_empty() {
            return Err(Failure::lost(&std::io::ErrorKind::UnexpectedEof.into()));
        }
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(String::from_utf8_lossy(line).into_owned()),
            None => Err(strange(&String::from_utf8_lossy(&line))),
        }
    }

    /// A value of so many bytes, with the end of the line behind it.
    fn block(&mut self, bytes: usize) -> Result<Vec<u8>, Failure> {
        let mut block = vec![0; bytes + 2];
        self.stream.read_exact(&mut block).map_err(|error| Failure::lost(&error))?;
        match block.split_off(bytes).as_slice() {
            b"\r\n" => Ok(block),
            _ => Err(strange("a value that is longer than it says")),
        }
    }

    /// Stores a value; false: the condition of the command does not hold.
    fn store(&mut self, command: &str, key: &str, fields: &Fields) -> Result<bool, Failure> {
        let value: &[u8] = fields.first().map_or(&[], |(_, value)| value);
        let mut bytes = format!("{command} {key} 0 0 {}\r\n", value.len()).into_bytes();
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
        self.send(&bytes)?;
        match self.line()?.as_str() {
            "STORED" => Ok(true),
            "NOT_STORED" => Ok(false),
            other => Err(refused(other)),
        }
    }
}

/// An answer that memcached does not give here: nothing can be told from what comes behind it.
fn strange(answer: &str) -> Failure {
    Failure::Lost(format!("the answer is not memcached's: {:?}", answer.chars().take(80).collect::<String>()))
}

/// An error of the server's, or an answer that is none.
fn refused(line: &str) -> Failure {
    let is_error = ["ERROR", "SERVER_ERROR", "CLIENT_ERROR"].contains(&line.split(' ').next().unwrap_or_default());
    if is_error { Failure::Refused(line.to_owned()) } else { strange(line) }
}

impl<S: Read + Write + Send> Connection for Memcached<S> {
    fn insert(&mut self, key: &str, record: &Fields) -> Result<(), Failure> {
        // Not `add`, as YCSB has it: records may be inserted again.
        match self.store("set", key, record)? {
            true => Ok(()),
            false => Err(strange("NOT_STORED")),
        }
    }

    fn update(&mut self, key: &str, fields: &Fields) -> Result<bool, Failure> {
        self.store("replace", key, fields)
    }

    fn read(&mut self, key: &str) -> Result<Option<Fields>, Failure> {
        self.send(format!("get {key}\r\n").as_bytes())?;
        let line = self.line()?;
        if line == "END" {
            return Ok(None);
        }
        let bytes = match line.split(' ').collect::<Vec<_>>()[..] {
            ["VALUE", name, _, bytes] if name == key => bytes.parse().ok().filter(|&bytes| bytes <= LARGEST_VALUE),
            _ => return Err(refused(&line)),
        };
        let value = self.block(bytes.ok_or_else(|| strange(&line))?)?;
        match self.line()?.as_str() {
            "END" => Ok(Some(vec![(0, value)])),
            other => Err(strange(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// Answers that were written before, and what is sent meanwhile.
    struct Script {
        answers: io::Cursor<Vec<u8>>,
        sent: Vec<u8>,
    }

    impl Read for Script {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            // In pieces, as a network may.
            let some = into.len().min(3);
            self.answers.read(&mut into[..some])
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.sent.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answering(answers: &str) -> Memcached<Script> {
        let answers = io::Cursor::new(answers.as_bytes().to_vec());
        Memcached { stream: BufReader::with_capacity(5, Script { answers, sent: Vec::new() }) }
    }

    fn value(text: &str) -> Fields {
        vec![(0, text.as_bytes().to_vec())]
    }

    #[test]
    fn requests_are_sent_and_answers_understood() {
        let mut server = answering(
            "STORED\r\nSTORED\r\nNOT_STORED\r\nVALUE k 0 4\r\na\r\nb\r\nEND\r\nEND\r\nVALUE k 0 0\r\n\r\nEND\r\n",
        );
        assert_eq!(server.insert("k", &value("a\r\nb")), Ok(()));
        assert_eq!(server.update("k", &value("")), Ok(true));
        assert_eq!(server.update("l", &value("x")), Ok(false));
        assert_eq!(server.read("k"), Ok(Some(value("a\r\nb"))));
        assert_eq!(server.read("l"), Ok(None));
        assert_eq!(server.read("k"), Ok(Some(value(""))));
        let sent = String::from_utf8_lossy(&server.stream.get_ref().sent).into_owned();
        let stores = "set k 0 0 4\r\na\r\nb\r\nreplace k 0 0 0\r\n\r\nreplace l 0 0 1\r\nx\r\n";
        assert_eq!(sent, format!("{stores}get k\r\nget l\r\nget k\r\n"));
        assert_eq!(server.read("k"), Err(Failure::Lost("the server closed it".to_owned())));
    }

    #[test]
    fn errors_of_the_server_are_told_from_a_connection_that_cannot_be_followed() {
        for line in ["ERROR", "SERVER_ERROR out of memory storing object", "CLIENT_ERROR bad data chunk"] {
            let failure = || Err(Failure::Refused(line.to_owned()));
            assert_eq!(answering(&format!("{line}\r\n")).update("k", &value("v")), failure());
            assert_eq!(answering(&format!("{line}\r\n")).read("k"), failure().map(|_: bool| None));
        }
        for answer in [
            "",
            "$-1\r\n",
            "VALUE l 0 1\r\nx\r\nEND\r\n",
            "VALUE k 0 x\r\n",
            "VALUE k 0 99999999999\r\n",
            "VALUE k 0 1\r\nxy\r\nEND\r\n",
            "VALUE k 0 1\r\nx\r\nVALUE k 0 1\r\n",
            "VALUE k 0 100\r\nx",
            "VALUE k 0 1",
        ] {
            assert!(matches!(answering(answer).read("k"), Err(Failure::Lost(_))), "{answer:?}");
        }
        let endless = "x".repeat(LONGEST_LINE as usize + 1);
        assert!(matches!(answering(&endless).read("k"), Err(Failure::Lost(_))));
        assert!(matches!(answering("NOT_STORED\r\n").insert("k", &value("v")), Err(Failure::Lost(_))));
    }
}
