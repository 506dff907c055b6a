//! The stores, each so that a transaction that has returned survives a power cut.

use std::path::Path;

use anyhow::Result;
use nearpm::Options;
use nearpm::direct::DirectPool;
use nearpm::prelude::*;

/// Values by number.
pub trait Embedded {
    /// Inserts pairs in one transaction, and waits until it is durable.
    fn insert(&mut self, pairs: &[(u64, &[u8])]) -> Result<()>;
    /// The value of a key.
    fn get(&self, key: u64) -> Result<Option<Vec<u8>>>;
    /// Bytes that went to a log since it was opened, where it tells.
    fn logged(&self) -> u64 {
        0
    }
}

#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct Root {
    values: PBTreeMap<u64, Value>,
}

#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
struct Value {
    offset: u64,
    bytes: u64,
}

/// The library: a tree of objects.
pub struct Ours {
    pool: DirectPool,
    root: Ptr<Root>,
}

impl Ours {
    /// Opens it, or makes it with so many bytes; new objects of at least so many bytes are written
    /// once.
    pub fn open(folder: &Path, bytes: u64, write_once_from: Option<u64>) -> Result<Ours> {
        let options = Options::new().durability(nearpm::Durability::Durable).write_once_from(write_once_from);
        let pool = DirectPool::open_or_create(&folder.join("pool").to_string_lossy(), bytes, &options)?;
        let root = pool.tx(|tx| tx.root_or_zeroed::<Root>())?;
        Ok(Ours { pool, root })
    }
}

impl Embedded for Ours {
    fn insert(&mut self, pairs: &[(u64, &[u8])]) -> Result<()> {
        Ok(self.pool.tx(|tx| {
            pairs.iter().try_for_each(|&(key, value)| {
                let offset = tx.alloc_bytes(value.len() as u64)?;
                tx.write(offset, value)?;
                let value = Value { offset, bytes: value.len() as u64 };
                self.root.values().insert(tx, &key, value).map(drop)
            })
        })?)
    }

    fn get(&self, key: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.pool.read(|from| {
            let Some(value) = self.root.values().get(from, &key)? else { return Ok(None) };
            let mut bytes = vec![0; value.bytes as usize];
            from.read(value.offset, &mut bytes)?;
            Ok(Some(bytes))
        })?)
    }

    fn logged(&self) -> u64 {
        self.pool.statistics().bytes_logged
    }
}

const TABLE: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("values");

/// redb, with its durable commits.
pub struct Redb(redb::Database);

impl Redb {
    /// Opens it, or makes it.
    pub fn open(folder: &Path) -> Result<Redb> {
        Ok(Redb(redb::Database::create(folder.join("redb"))?))
    }
}

impl Embedded for Redb {
    fn insert(&mut self, pairs: &[(u64, &[u8])]) -> Result<()> {
        let tx = self.0.begin_write()?;
        {
            let mut table = tx.open_table(TABLE)?;
            for &(key, value) in pairs {
                table.insert(key, value)?;
            }
        }
        Ok(tx.commit()?)
    }

    fn get(&self, key: u64) -> Result<Option<Vec<u8>>> {
        use redb::ReadableDatabase;
        let table = self.0.begin_read()?.open_table(TABLE)?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }
}

/// LMDB, without any of the flags that leave out synchronisations.
pub struct Lmdb {
    environment: heed::Env,
    values: heed::Database<heed::types::U64<heed::byteorder::BigEndian>, heed::types::Bytes>,
}

impl Lmdb {
    /// Opens it, or makes it, for at most so many bytes.
    #[allow(unsafe_code, reason = "the file is mapped: nobody else may change it")]
    pub fn open(folder: &Path, bytes: u64) -> Result<Lmdb> {
        let mut options = heed::EnvOpenOptions::new();
        // SAFETY: the folder is this program's own.
        let environment = unsafe { options.map_size(bytes as usize).open(folder) }?;
        let mut tx = environment.write_txn()?;
        let values = environment.create_database(&mut tx, None)?;
        tx.commit()?;
        Ok(Lmdb { environment, values })
    }
}

impl Embedded for Lmdb {
    fn insert(&mut self, pairs: &[(u64, &[u8])]) -> Result<()> {
        let mut tx = self.environment.write_txn()?;
        for &(key, value) in pairs {
            self.values.put(&mut tx, &key, value)?;
        }
        Ok(tx.commit()?)
    }

    fn get(&self, key: u64) -> Result<Option<Vec<u8>>> {
        let tx = self.environment.read_txn()?;
        Ok(self.values.get(&tx, &key)?.map(<[u8]>::to_vec))
    }
}

/// fjall, which synchronises its journal behind each batch.
pub struct Fjall {
    database: fjall::Database,
    values: fjall::Keyspace,
}

impl Fjall {
    /// Opens it, or makes it.
    pub fn open(folder: &Path) -> Result<Fjall> {
        let database = fjall::Database::builder(folder.join("fjall")).open()?;
        let values = database.keyspace("values", fjall::KeyspaceCreateOptions::default)?;
        Ok(Fjall { database, values })
    }
}

impl Embedded for Fjall {
    fn insert(&mut self, pairs: &[(u64, &[u8])]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(fjall::PersistMode::SyncAll));
        for &(key, value) in pairs {
            batch.insert(&self.values, key.to_be_bytes(), value);
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.values.get(key.to_be_bytes())?.map(|value| value.to_vec()))
    }
}
