//! Minimal clients.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A reply of Redis's protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Double(String),
    Array(Vec<Value>),
    Set(Vec<Value>),
    Map(Vec<Value>),
}

/// Text as a reply.
pub fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// A connection, read by lines and by bytes.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Client {
        Client::try_connect(address).expect("the server listens")
    }

    /// Connects, if somebody listens.
    pub fn try_connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// A line without its end.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// So many bytes, and the end of a line behind them.
    pub fn block(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length + 2];
        self.stream.read_exact(&mut bytes)?;
        assert_eq!(bytes.split_off(length), b"\r\n");
        Ok(bytes)
    }

    /// Everything up to the end of the connection.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream.read_to_end(&mut bytes).map(|_| bytes)
    }

    /// Sends a command of Redis's protocol.
    pub fn command(&mut self, words: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.send(&encode(words))
    }

    /// Sends a command and reads its reply.
    pub fn ask(&mut self, words: &[impl AsRef<[u8]>]) -> io::Result<Value> {
        self.command(words)?;
        self.value()
    }

    /// As [`Client::ask`], with words in one line.
    pub fn say(&mut self, line: &str) -> Value {
        self.ask(&line.split(' ').collect::<Vec<_>>()).expect("the server answers")
    }

    fn values(&mut self, count: i64) -> io::Result<Vec<Value>> {
        (0..count).map(|_| self.value()).collect()
    }

    /// Reads a reply.
    pub fn value(&mut self) -> io::Result<Value> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(line.len().min(1));
        let length = || rest.parse::<i64>().map_err(|_| io::Error::other(format!("{line:?} has no length")));
        Ok(match kind {
            "+" => Value::Simple(rest.to_owned()),
            "-" => Value::Error(rest.to_owned()),
            ":" => Value::Integer(length()?),
            "," => Value::Double(rest.to_owned()),
            "_" => Value::Null,
            "$" | "*" if rest == "-1" => Value::Null,
            "$" => Value::Bulk(self.block(length()? as usize)?),
            "*" | ">" => Value::Array(self.values(length()?)?),
            "=" => Value::Bulk(self.block(length()? as usize)?.split_off(4)),
            "~" => Value::Set(self.values(length()?)?),
            "%" => Value::Map(self.values(2 * length()?)?),
            _ => return Err(io::Error::other(format!("{line:?} is no reply"))),
        })
    }
}

/// A command as bytes.
pub fn encode(words: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
