//! An instruction's modifiers, taken one by one; what is left over is an error.

use crate::ParseError;
use crate::code::{Order, Scope, Space};
use crate::lanes::Type;
use crate::lanes::rounding::Rounding;
use crate::syntax::{Position, error};

pub(super) struct Modifiers<'a> {
    pub at: Position,
    pub opcode: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> Modifiers<'a> {
    pub fn new(at: Position, opcode: &'a str, modifiers: &[&'a str]) -> Self {
        Self { at, opcode, rest: modifiers.to_vec() }
    }

    /// Whether this modifier was there.
    pub fn take(&mut self, name: &str) -> bool {
        self.one_of(&[name]).is_some()
    }

    /// The first of these that is there.
    pub fn one_of(&mut self, names: &[&str]) -> Option<&'a str> {
        let place = self.rest.iter().position(|modifier| names.contains(modifier))?;
        Some(self.rest.remove(place))
    }

    /// The first modifier that is a type.
    pub fn try_kind(&mut self) -> Option<Type> {
        let place = self.rest.iter().position(|modifier| Type::parse(modifier).is_some())?;
        Type::parse(self.rest.remove(place))
    }

    pub fn kind(&mut self) -> Result<Type, ParseError> {
        match self.try_kind() {
            Some(kind) => Ok(kind),
            None => error(self.at, format!("expected `{}` with a type that is supported", self.opcode)),
        }
    }

    /// Nothing may be left.
    pub fn finish(&self) -> Result<(), ParseError> {
        match self.rest.first() {
            None => Ok(()),
            Some(modifier) => error(self.at, format!("`.{modifier}` of `{}` is not supported", self.opcode)),
        }
    }

    pub fn unsupported<T>(&self) -> Result<T, ParseError> {
        error(self.at, format!("`{}` in this form or of this type is not supported", self.opcode))
    }

    /// Rounding of an arithmetic instruction, to nearest where none is written.
    pub fn rounding(&mut self) -> Rounding {
        self.one_of(&["rn", "rz", "rm", "rp"]).and_then(Rounding::parse).unwrap_or(Rounding::Nearest)
    }

    /// Rounding of an instruction that is only there to nearest.
    pub fn nearest(&mut self) -> Result<(), ParseError> {
        match self.rounding() {
            Rounding::Nearest => Ok(()),
            _ => error(self.at, format!("`{}` is only supported with rounding to nearest (`.rn`)", self.opcode)),
        }
    }

    pub fn space(&mut self) -> Option<Space> {
        // `.shared::cta` is the block's own; other blocks' shared memory is not modelled.
        self.one_of(&["global", "const", "shared", "shared::cta", "local", "param", "param::entry", "param::func"]).map(
            |space| match space {
                "global" | "const" => Space::Global,
                "local" | "param::func" => Space::Local,
                "param" | "param::entry" => Space::Param,
                _ => Space::Shared,
            },
        )
    }

    pub fn scope(&mut self) -> Option<Scope> {
        self.one_of(&["cta", "cluster", "gpu", "gl", "sys"]).map(|scope| match scope {
            "cta" => Scope::Block,
            // A cluster's blocks are blocks of one device: no narrower hardware path is modelled.
            "cluster" | "gpu" | "gl" => Scope::Device,
            _ => Scope::System,
        })
    }

    /// Order and scope of an access; cache hints are taken and have no effect.
    pub fn order(&mut self, atomic: bool) -> Order {
        let kind = self.one_of(&["weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"]);
        if kind == Some("mmio") {
            self.take("relaxed");
        }
        let scope = self.scope();
        while self.one_of(&["ca", "cg", "cs", "lu", "cv", "nc", "wb", "wt"]).or_else(|| self.cache_hint()).is_some() {}
        let default = if matches!(kind, Some("volatile" | "mmio")) { Scope::System } else { Scope::Device };
        Order {
            strong: atomic || !matches!(kind, None | Some("weak")),
            acquire: matches!(kind, Some("acquire" | "acq_rel")),
            release: matches!(kind, Some("release" | "acq_rel")),
            scope: scope.unwrap_or(default),
        }
    }

    fn cache_hint(&mut self) -> Option<&'a str> {
        let hint = |modifier: &&str| modifier.starts_with("L1::") || modifier.starts_with("L2::");
        let place = self.rest.iter().position(hint)?;
        // `.L2::cache_hint` has an operand more, which is not expected here.
        (self.rest[place] != "L2::cache_hint").then(|| self.rest.remove(place))
    }

    /// `.v2`, `.v4`, or one.
    pub fn vector(&mut self) -> usize {
        match self.one_of(&["v2", "v4"]) {
            Some("v2") => 2,
            Some(_) => 4,
            None => 1,
        }
    }
}
