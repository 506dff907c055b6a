//! Redis's protocol, by the `redis` crate.

use std::net::SocketAddr;

use redis::io::tcp::TcpSettings;
use redis::{
    Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisConnectionInfo, RedisError,
};
use redis::{Value, cmd};

use super::{Connection, Failure, PATIENCE};
use crate::record::{Fields, Layout};

pub struct Redis {
    connection: redis::Connection,
    layout: Layout,
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Failure {
        match error.kind() {
            ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType => {
                Failure::Refused(error.to_string())
            }
            ErrorKind::Parse => Failure::Lost("the answer is not Redis's".to_owned()),
            _ if error.is_timeout() => Failure::lost(&std::io::ErrorKind::TimedOut.into()),
            _ => Failure::Lost(error.to_string()),
        }
    }
}

/// The name of a field, and a field by its name.
fn name(field: usize) -> String {
    format!("field{field}")
}

fn field(name: &[u8]) -> Option<usize> {
    str::from_utf8(name).ok()?.strip_prefix("field")?.parse().ok()
}

impl Redis {
    pub fn connect(address: SocketAddr, layout: Layout) -> Result<Redis, Failure> {
        // The server's statistics are to count what is measured, and nothing that the crate says of
        // itself.
        let silent = RedisConnectionInfo::default().set_skip_set_lib_name();
        let info = ConnectionAddr::Tcp(address.ip().to_string(), address.port())
            .into_connection_info()?
            .set_redis_settings(silent)
            .set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let connection = Client::open(info)?.get_connection_with_timeout(PATIENCE)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        connection.set_write_timeout(Some(PATIENCE))?;
        Ok(Redis { connection, layout })
    }

    fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, Failure> {
        Ok(command.query(&mut self.connection)?)
    }

    /// HSET; fields that were not there.
    fn write_hash(&mut self, key: &str, fields: &Fields) -> Result<usize, Failure> {
        let mut command = cmd("HSET");
        command.arg(key);
        for (number, value) in fields {
            command.arg(name(*number)).arg(value);
        }
        self.ask(&command)
    }

    /// SET, with options; false: the condition does not hold.
    fn write_value(&mut self, key: &str, fields: &Fields, options: &[&str]) -> Result<bool, Failure> {
        let value = fields.first().map_or(&[][..], |(_, value)| value);
        Ok(self.ask::<Value>(cmd("SET").arg(key).arg(value).arg(options))? != Value::Nil)
    }
}

/// The sorted set of all keys, whose scores are the same, so that their own order counts.
const INDEX: &str = "index";

/// What HGETALL gives, as fields by number.
fn fields(found: Vec<(Vec<u8>, Vec<u8>)>) -> Fields {
    // A field by another name is none of ours: no record has so many.
    found.into_iter().map(|(name, value)| (field(&name).unwrap_or(usize::MAX), value)).collect()
}

impl Connection for Redis {
    fn insert(&mut self, key: &str, record: &Fields) -> Result<(), Failure> {
        match self.layout {
            Layout::Hash => self.write_hash(key, record).map(drop),
            Layout::Ordered => {
                // Whoever finds it in the index finds its fields.
                let mut command = cmd("HSET");
                command.arg(key);
                for (number, value) in record {
                    command.arg(name(*number)).arg(value);
                }
                let mut both = redis::pipe();
                both.atomic().add_command(command).add_command(cmd("ZADD").arg(INDEX).arg(0).arg(key).clone());
                Ok(both.query::<(i64, i64)>(&mut self.connection).map(drop)?)
            }
            Layout::Value => self.write_value(key, record, &[]).map(drop),
        }
    }

    fn update(&mut self, key: &str, fields: &Fields) -> Result<bool, Failure> {
        match self.layout {
            Layout::Hash | Layout::Ordered => self.write_hash(key, fields).map(|new| new == 0),
            Layout::Value => self.write_value(key, fields, &["XX"]),
        }
    }

    fn read(&mut self, key: &str) -> Result<Option<Fields>, Failure> {
        match self.layout {
            Layout::Hash | Layout::Ordered => {
                let fields = fields(self.ask(cmd("HGETALL").arg(key))?);
                Ok(if fields.is_empty() { None } else { Some(fields) })
            }
            Layout::Value => {
                let found: Option<Vec<u8>> = self.ask(cmd("GET").arg(key))?;
                Ok(found.map(|value| vec![(0, value)]))
            }
        }
    }

    fn scan(&mut self, key: &str, count: u64) -> Result<Vec<(String, Fields)>, Failure> {
        let mut range = cmd("ZRANGEBYLEX");
        range.arg(INDEX).arg(format!("[{key}")).arg("+").arg("LIMIT").arg(0).arg(count);
        let keys: Vec<String> = self.ask(&range)?;
        let mut reads = redis::pipe();
        keys.iter().for_each(|key| {
            reads.cmd("HGETALL").arg(key);
        });
        let found: Vec<Vec<(Vec<u8>, Vec<u8>)>> =
            if keys.is_empty() { Vec::new() } else { reads.query(&mut self.connection)? };
        Ok(keys.into_iter().zip(found.into_iter().map(fields)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_names() {
        assert!((0..20).all(|number| field(name(number).as_bytes()) == Some(number)));
        for strange in [&b"field"[..], b"field-1", b"f0", b"field1x", b"\xff"] {
            assert_eq!(field(strange), None);
        }
    }
}
