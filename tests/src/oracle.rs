//! What card traffic must do, told in the simplest way: every access takes effect at once, in the
//! order of its arrival. A card may overlap and reorder as it likes as long as nobody can tell.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::firmware::Instruction;
use nearpm_interface::geometry::{LINE, LINE_U64, POOLS_BASE};
use nearpm_interface::media::{ENTRY_MAGIC, ENTRY_VERSION, EntryHead, EntryKind};
use nearpm_sim::core::{Access, Medium};

/// Memory after everything so far.
pub struct Oracle {
    /// The medium that the card should end with.
    pub medium: Medium,
}

impl Oracle {
    /// Starts from a medium.
    pub fn new(medium: Medium) -> Self {
        Oracle { medium }
    }

    fn bytes(&self, offset: u64, length: u32) -> Vec<u8> {
        let at = (POOLS_BASE + offset) as usize;
        self.medium.bytes[at..at + length as usize].to_vec()
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) {
        let at = (POOLS_BASE + offset) as usize;
        self.medium.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The log entry of a range as it is now.
    fn entry(&self, command: &Command, kind: u8, offset: u64) -> Vec<u8> {
        let head = EntryHead {
            magic: ENTRY_MAGIC,
            kind,
            version: ENTRY_VERSION,
            thread: command.thread,
            sequence: command.sequence,
            txid: command.txid,
            offset,
            length: command.length,
            pool: command.pool,
            participants: command.participants,
            ..EntryHead::default()
        };
        head.encode(&self.bytes(offset, command.length))
    }

    fn log(&mut self, command: &Command, kind: EntryKind, offset: u64, slot: u64) {
        let entry = self.entry(command, kind as u8, offset);
        self.put(slot, &entry);
    }

    /// Executes the instructions of a program that the checker takes, each at once; gives the
    /// status with which it ends.
    ///
    /// # Panics
    /// If it has no end.
    pub fn program(&mut self, code: &[Instruction], command: &Command) -> u8 {
        let field = |operand| command.operand(operand);
        for instruction in code {
            match *instruction {
                Instruction::Copy { from, to, lines: false, .. } => {
                    self.put(field(to), &self.bytes(field(from), command.length));
                }
                // The head that is put before the data is that of another instruction: its kind
                // does not matter here.
                Instruction::Copy { from, to, .. } => {
                    let entry = self.entry(command, 0, field(from));
                    self.put(field(to) + LINE_U64, &entry[LINE..]);
                }
                // The data is what the range still holds, since nothing may overwrite it before a
                // wait.
                Instruction::Generate { at, object, kind } => {
                    let entry = self.entry(command, kind, field(object));
                    self.put(field(at), &entry[..LINE]);
                }
                Instruction::Store { at } => self.put(field(at), &command.auxiliary.to_le_bytes()),
                Instruction::Wait => {}
                Instruction::End { status } => return status,
            }
        }
        panic!("a program ends")
    }

    /// Executes a command.
    ///
    /// # Panics
    /// For opcodes that traces do not hold.
    pub fn command(&mut self, c: &Command) {
        let opcode = Opcode::from_code(c.opcode).expect("traces hold known opcodes");
        match opcode {
            Opcode::UndoLog => self.log(c, EntryKind::Undo, c.source, c.destination),
            Opcode::Checkpoint => self.log(c, EntryKind::Checkpoint, c.source, c.destination),
            Opcode::MirrorLog => {
                self.log(c, EntryKind::Undo, c.source, c.destination);
                self.log(c, EntryKind::Undo, c.source, c.auxiliary);
            }
            Opcode::UndoRedo => {
                self.log(c, EntryKind::Undo, c.destination, c.auxiliary);
                self.put(c.destination, &self.bytes(c.source, c.length));
            }
            Opcode::Apply | Opcode::ShadowCopy | Opcode::Recover => {
                self.put(c.destination, &self.bytes(c.source, c.length));
            }
            Opcode::Commit | Opcode::Switch => self.put(c.destination, &c.auxiliary.to_le_bytes()),
            Opcode::Fence => {}
            Opcode::Map | Opcode::Unmap => panic!("{opcode:?} is not part of a trace"),
        }
    }

    /// Makes a host access; the line that a load gives.
    ///
    /// # Panics
    /// For accesses to anything but persistent memory.
    pub fn host(&mut self, access: &Access) -> Option<[u8; LINE]> {
        match access {
            Access::PmRead { address } => {
                Some(self.medium.bytes[*address as usize..][..LINE].try_into().expect("a line"))
            }
            Access::PmWrite { address, data, strobes } => {
                self.medium.write_line(*address, data, *strobes);
                None
            }
            other => panic!("{other:?} is not part of a trace"),
        }
    }
}
