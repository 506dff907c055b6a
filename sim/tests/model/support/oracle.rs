//! What memory must hold after a sequence of accesses, one after the other: no units, no queues, no
//! firmware.

use std::collections::BTreeMap;

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::LINE;
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind};
use nearpm_interface::status::Status;
use nearpm_sim::core::{Access, Medium};

/// A mapping as far as memory and statuses depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    pub base: u64,
    pub committed: u64,
}

/// The card as its contract describes it, executing at once.
#[derive(Clone)]
pub struct Oracle {
    pub medium: Medium,
    pub maps: BTreeMap<(u32, u16), Mapped>,
}

impl Oracle {
    pub fn new(medium: Medium) -> Self {
        Oracle { medium, maps: BTreeMap::new() }
    }

    /// Executes an access; gives the status of a command.
    pub fn apply(&mut self, access: &Access) -> Option<Status> {
        match access {
            Access::PmWrite { address, data, strobes } => self.medium.write_line(*address, data, *strobes),
            Access::CommandWrite { data, .. } => {
                let command = Command::decode(data).expect("scenarios post whole commands");
                return Some(self.command(&command));
            }
            _ => {}
        }
        None
    }

    pub fn line(&self, address: u64) -> [u8; LINE] {
        self.medium.bytes[address as usize..][..LINE].try_into().unwrap()
    }

    fn bytes(&self, address: u64, length: u32) -> Vec<u8> {
        self.medium.bytes[address as usize..][..length as usize].to_vec()
    }

    fn write(&mut self, address: u64, data: &[u8]) {
        self.medium.bytes[address as usize..][..data.len()].copy_from_slice(data);
    }

    fn command(&mut self, c: &Command) -> Status {
        let key = (c.pool, c.thread);
        let op = Opcode::from_code(c.opcode).expect("scenarios use known opcodes");
        if op == Opcode::Map {
            if self.maps.contains_key(&key) {
                return Status::MapExists;
            }
            self.maps.insert(key, Mapped { base: c.source, committed: c.sequence });
            return Status::Ok;
        }
        let Some(mapped) = self.maps.get(&key).copied() else { return Status::Unmapped };
        let base = mapped.base;
        let logs = matches!(op, Opcode::UndoLog | Opcode::UndoRedo | Opcode::Checkpoint | Opcode::MirrorLog);
        if logs && c.txid <= mapped.committed {
            return Status::StaleTransaction;
        }
        match op {
            Opcode::Fence | Opcode::Map => {}
            Opcode::UndoLog => self.log(c, base, c.source, c.destination, EntryKind::Undo),
            Opcode::Checkpoint => self.log(c, base, c.source, c.destination, EntryKind::Checkpoint),
            Opcode::MirrorLog => {
                self.log(c, base, c.source, c.destination, EntryKind::Undo);
                self.log(c, base, c.source, c.auxiliary, EntryKind::Undo);
            }
            Opcode::UndoRedo => {
                self.log(c, base, c.destination, c.auxiliary, EntryKind::Undo);
                self.copy(c, base);
            }
            Opcode::Apply | Opcode::ShadowCopy | Opcode::Recover => self.copy(c, base),
            Opcode::Commit | Opcode::Switch => {
                self.write(base + c.destination, &c.auxiliary.to_le_bytes());
                if op == Opcode::Commit {
                    self.maps.get_mut(&key).unwrap().committed = c.txid;
                }
            }
            Opcode::Unmap => {
                self.maps.remove(&key);
            }
        }
        Status::Ok
    }

    fn copy(&mut self, c: &Command, base: u64) {
        let data = self.bytes(base + c.source, c.length);
        self.write(base + c.destination, &data);
    }

    fn log(&mut self, c: &Command, base: u64, object: u64, slot: u64, kind: EntryKind) {
        let head = EntryHead {
            magic: ENTRY_MAGIC,
            kind: kind as u8,
            version: ENTRY_VERSION,
            thread: c.thread,
            sequence: c.sequence,
            txid: c.txid,
            offset: object,
            length: c.length,
            pool: c.pool,
            participants: c.participants,
            ..EntryHead::default()
        };
        let data = self.bytes(base + object, c.length);
        let entry = head.encode(&data);
        self.write(base + slot, &entry);
    }
}
