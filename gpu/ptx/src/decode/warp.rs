//! Barriers and what the lanes of a warp do together.

use super::builder::Builder;
use super::control::{B32, Guard};
use super::modifiers::Modifiers;
use super::operands::Operands;
use crate::ParseError;
use crate::code::{AtomicOp, BarrierMode, Op, Predicate, Register, ShuffleMode, VoteMode};
use crate::syntax::{OperandKind, error};

impl<'a> Builder<'a> {
    pub fn warp(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        match modifiers.opcode {
            "bar" | "barrier" => self.barrier(modifiers, operands, guard),
            "shfl" => self.shuffle(modifiers, operands, guard),
            "vote" => self.vote(modifiers, operands, guard),
            "match" => self.matching(modifiers, operands, guard),
            "redux" => self.reduce(modifiers, operands, guard),
            "activemask" => {
                modifiers.take("b32");
                operands.exactly(1, "activemask")?;
                let to = self.target(&operands.all[0])?.0;
                self.emit(Op::ActiveMask { to }, guard)
            }
            _ => {
                modifiers.take("u32");
                self.emit(Op::Yield, guard)
            }
        }
    }

    fn barrier(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("cta");
        modifiers.take("aligned");
        if modifiers.take("warp") {
            modifiers.take("sync");
            operands.exactly(1, "bar.warp.sync")?;
            let members = self.source(&operands.all[0], B32)?;
            return self.emit(Op::WarpBarrier { members }, guard);
        }
        let Some(kind) = modifiers.one_of(&["sync", "arrive", "red"]) else { return modifiers.unsupported() };
        if kind == "red" {
            return self.barrier_reduction(modifiers, operands, guard);
        }
        if operands.all.is_empty() || operands.all.len() > 2 {
            return operands.exactly(1, modifiers.opcode);
        }
        let id = self.source(&operands.all[0], B32)?;
        let count = match operands.all.get(1) {
            Some(count) => Some(self.source(count, B32)?),
            None => None,
        };
        let mode = if kind == "sync" { BarrierMode::Sync } else { BarrierMode::Arrive };
        if mode == BarrierMode::Arrive && count.is_none() {
            return error(operands.at, "`bar.arrive` takes the number of threads");
        }
        self.emit(Op::Barrier { mode, id, count, to: 0, a: 0, not: false }, guard)
    }

    fn barrier_reduction(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        let Some(name) = modifiers.one_of(&["popc", "and", "or"]) else { return modifiers.unsupported() };
        modifiers.one_of(&["u32", "pred"]);
        if !matches!(operands.all.len(), 3 | 4) {
            return operands.exactly(3, "bar.red");
        }
        let id = self.source(&operands.all[1], B32)?;
        let count = match operands.all.len() {
            4 => Some(self.source(&operands.all[2], B32)?),
            _ => None,
        };
        let (a, not) = self.condition(&operands.all[operands.all.len() - 1])?;
        let (mode, to) = match name {
            "popc" => (BarrierMode::Popc, self.target(&operands.all[0])?.0),
            "and" => (BarrierMode::And, self.condition(&operands.all[0])?.0),
            _ => (BarrierMode::Or, self.condition(&operands.all[0])?.0),
        };
        self.emit(Op::Barrier { mode, id, count, to, a, not }, guard)
    }

    fn shuffle(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("sync");
        modifiers.take("b32");
        let mode = match modifiers.one_of(&["up", "down", "bfly", "idx"]) {
            Some("up") => ShuffleMode::Up,
            Some("down") => ShuffleMode::Down,
            Some("bfly") => ShuffleMode::Butterfly,
            Some(_) => ShuffleMode::Index,
            None => return modifiers.unsupported(),
        };
        operands.exactly(5, "shfl.sync")?;
        let (to, valid) = self.target_and_flag(operands)?;
        let a = self.source(&operands.all[1], B32)?;
        let b = self.source(&operands.all[2], B32)?;
        let c = self.source(&operands.all[3], B32)?;
        let members = self.source(&operands.all[4], B32)?;
        self.emit(Op::Shuffle { mode, to, valid, a, b, c, members }, guard)
    }

    /// The first operand where it may be `register|predicate`, as shuffles and matches have it.
    fn target_and_flag(&mut self, operands: &Operands<'_, 'a>) -> Result<(Register, Option<Predicate>), ParseError> {
        let OperandKind::Pair(to, flag) = operands.all[0].kind else {
            return Ok((self.target(&operands.all[0])?.0, None));
        };
        let register = crate::syntax::Operand { at: operands.at, kind: OperandKind::Name(to, 0) };
        Ok((self.target(&register)?.0, Some(self.predicate(operands.at, flag)?)))
    }

    fn vote(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("sync");
        modifiers.one_of(&["pred", "b32"]);
        let mode = match modifiers.one_of(&["all", "any", "uni", "ballot"]) {
            Some("all") => VoteMode::All,
            Some("any") => VoteMode::Any,
            Some("uni") => VoteMode::Uniform,
            Some(_) => VoteMode::Ballot,
            None => return modifiers.unsupported(),
        };
        operands.exactly(3, "vote.sync")?;
        let to = match mode {
            VoteMode::Ballot => self.target(&operands.all[0])?.0,
            _ => self.condition(&operands.all[0])?.0,
        };
        let (a, not) = self.condition(&operands.all[1])?;
        let members = self.source(&operands.all[2], B32)?;
        self.emit(Op::Vote { mode, to, a, not, members }, guard)
    }

    fn matching(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("sync");
        let Some(which) = modifiers.one_of(&["any", "all"]) else { return modifiers.unsupported() };
        let kind = modifiers.kind()?;
        operands.exactly(3, "match.sync")?;
        let (to, same) = self.target_and_flag(operands)?;
        let a = self.source(&operands.all[1], kind)?;
        let members = self.source(&operands.all[2], B32)?;
        self.emit(Op::Match { all: which == "all", to, same, a, members }, guard)
    }

    fn reduce(
        &mut self,
        modifiers: &mut Modifiers<'a>,
        operands: &Operands<'_, 'a>,
        guard: Guard,
    ) -> Result<(), ParseError> {
        modifiers.take("sync");
        let op = match modifiers.one_of(&["add", "min", "max", "and", "or", "xor"]) {
            Some("add") => AtomicOp::Add,
            Some("min") => AtomicOp::Min,
            Some("max") => AtomicOp::Max,
            Some("and") => AtomicOp::And,
            Some("or") => AtomicOp::Or,
            Some(_) => AtomicOp::Xor,
            None => return modifiers.unsupported(),
        };
        let kind = modifiers.kind()?;
        operands.exactly(3, "redux.sync")?;
        let to = self.target(&operands.all[0])?.0;
        let a = self.source(&operands.all[1], kind)?;
        let members = self.source(&operands.all[2], B32)?;
        self.emit(Op::Reduce { op, signed: kind.signed(), to, a, members }, guard)
    }
}
