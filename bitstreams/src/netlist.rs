//! A netlist mapped to UltraScale+ cells, as yosys writes it in JSON.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What a cell is on a path between registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Paths start and end here: flip-flops, block RAM.
    Register,
    /// One level of logic: a LUT, or the asynchronous read of a LUT RAM.
    Level,
    /// Carry chains and the multiplexers inside a slice: no level of their own.
    Free,
}

fn role(cell: &str) -> Option<Role> {
    Some(match cell {
        c if c.starts_with("FD") || c.starts_with("RAMB") || c.starts_with("URAM") => Role::Register,
        c if c.starts_with("LUT") || c == "INV" => Role::Level,
        // Distributed RAM, and shift registers made of LUTs.
        c if c.starts_with("RAM") || c.starts_with("SRL") => Role::Level,
        c if c.starts_with("CARRY") || c.starts_with("MUXF") || c == "BUFG" => Role::Free,
        _ => return None,
    })
}

/// Inputs of a LUT RAM that are sampled by its clock, and so end a path.
fn is_sampled(cell: &str, port: &str) -> bool {
    let written = port.starts_with("DI") || port.starts_with("WE") || port == "ADDRD" || port == "ADDRH" || port == "D";
    (cell.starts_with("RAM") && !cell.starts_with("RAMB") && written) || cell.starts_with("SRL")
}

/// A longest path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// LUTs on it.
    pub levels: usize,
    /// Names of the nets at its cells' outputs, from the start.
    pub nets: Vec<String>,
}

/// A mapped module.
pub struct Netlist {
    cells: Vec<Cell>,
    /// Cell and role that drive a net.
    drivers: HashMap<u64, usize>,
    names: HashMap<u64, String>,
    outputs: Vec<u64>,
}

struct Cell {
    kind: String,
    role: Role,
    inputs: Vec<(String, u64)>,
}

impl Netlist {
    /// Reads yosys' JSON; `top` is the module to take.
    pub fn parse(json: &str, top: &str) -> Result<Netlist> {
        let json: Value = serde_json::from_str(json).context("the netlist is not JSON")?;
        let module = &json["modules"][top];
        let Some(cells) = module["cells"].as_object() else { bail!("the netlist has no module {top}") };
        let mut netlist =
            Netlist { cells: Vec::new(), drivers: HashMap::new(), names: HashMap::new(), outputs: Vec::new() };
        for (name, net) in module["netnames"].as_object().context("no nets")? {
            for (i, bit) in net["bits"].as_array().context("a net without bits")?.iter().enumerate() {
                if let Some(bit) = bit.as_u64() {
                    let entry = netlist.names.entry(bit).or_insert_with(|| format!("{name}[{i}]"));
                    if entry.starts_with('$') && !name.starts_with('$') {
                        *entry = format!("{name}[{i}]");
                    }
                }
            }
        }
        for (name, cell) in cells {
            let kind = cell["type"].as_str().context("a cell without a type")?.to_string();
            let Some(role) = role(&kind) else { bail!("cell {name} has the unknown type {kind}") };
            let mut inputs = Vec::new();
            for (port, bits) in cell["connections"].as_object().context("a cell without connections")? {
                let output = cell["port_directions"][port].as_str() == Some("output");
                for bit in bits.as_array().context("a port without bits")?.iter().filter_map(Value::as_u64) {
                    if output {
                        netlist.drivers.insert(bit, netlist.cells.len());
                    } else {
                        inputs.push((port.clone(), bit));
                    }
                }
            }
            netlist.cells.push(Cell { kind, role, inputs });
        }
        for port in module["ports"].as_object().context("no ports")?.values() {
            if port["direction"] == "output" {
                netlist.outputs.extend(port["bits"].as_array().context("no bits")?.iter().filter_map(Value::as_u64));
            }
        }
        Ok(netlist)
    }

    /// Number of cells of each type.
    pub fn cells(&self) -> BTreeMap<&str, usize> {
        let mut count = BTreeMap::new();
        for cell in &self.cells {
            *count.entry(cell.kind.as_str()).or_default() += 1;
        }
        count
    }

    /// LUTs that the module takes: LUT cells, and the LUTs that its distributed RAMs are made of.
    pub fn luts(&self) -> usize {
        self.cells().iter().map(|(kind, n)| n * luts_of(kind)).sum()
    }

    /// Flip-flops.
    pub fn flip_flops(&self) -> usize {
        self.cells().iter().filter(|(kind, _)| kind.starts_with("FD")).map(|(_, n)| n).sum()
    }

    /// Block RAMs, in units of 36 Kb.
    pub fn block_rams(&self) -> f64 {
        let each = |kind: &str| match kind {
            k if k.starts_with("RAMB36") => 1.0,
            k if k.starts_with("RAMB18") => 0.5,
            _ => 0.0,
        };
        self.cells().iter().map(|(kind, &n)| n as f64 * each(kind)).sum()
    }

    /// The path with the most LUT levels between registers (or ports and registers).
    pub fn deepest(&self) -> Result<Path> {
        let mut levels = vec![None; self.cells.len()];
        let mut best = (0, None);
        let ends = self.cells.iter().flat_map(|cell| {
            cell.inputs.iter().filter(|(port, _)| cell.role == Role::Register || is_sampled(&cell.kind, port))
        });
        let ends = ends.map(|&(_, net)| net).chain(self.outputs.iter().copied());
        for net in ends {
            let depth = self.level(net, &mut levels)?;
            if depth > best.0 {
                best = (depth, Some(net));
            }
        }
        let mut path = Path { levels: best.0, nets: Vec::new() };
        let mut net = best.1;
        while let Some(at) = net {
            path.nets.push(self.names.get(&at).cloned().unwrap_or_default());
            net = self.drivers.get(&at).map(|&c| &self.cells[c]).filter(|c| c.role != Role::Register).and_then(|c| {
                let combinational = c.inputs.iter().filter(|(port, _)| !is_sampled(&c.kind, port));
                combinational.map(|&(_, n)| n).max_by_key(|n| self.known(*n, &levels))
            });
        }
        path.nets.reverse();
        path.nets.dedup();
        Ok(path)
    }

    fn known(&self, net: u64, levels: &[Option<usize>]) -> usize {
        self.drivers.get(&net).and_then(|&c| levels[c]).unwrap_or(0)
    }

    /// LUT levels behind a net. Iterative, because carry chains make paths of thousands of cells.
    fn level(&self, net: u64, levels: &mut [Option<usize>]) -> Result<usize> {
        let Some(&root) = self.drivers.get(&net) else { return Ok(0) };
        let mut stack = vec![(root, 0usize)];
        let mut open = vec![];
        while let Some((cell, next)) = stack.pop() {
            if levels[cell].is_some() {
                continue;
            }
            let this = &self.cells[cell];
            if this.role == Role::Register {
                levels[cell] = Some(0);
                continue;
            }
            if next == 0 {
                open.push(cell);
                if open.len() > self.cells.len() {
                    bail!("the netlist has a combinational loop");
                }
            }
            let inputs: Vec<usize> = this
                .inputs
                .iter()
                .filter(|(port, _)| !is_sampled(&this.kind, port))
                .filter_map(|(_, n)| self.drivers.get(n).copied())
                .collect();
            match inputs[next.min(inputs.len())..].iter().position(|&c| levels[c].is_none()) {
                Some(skip) => {
                    stack.push((cell, next + skip + 1));
                    stack.push((inputs[next + skip], 0));
                }
                None => {
                    let deepest = inputs.iter().map(|&c| levels[c].unwrap_or(0)).max().unwrap_or(0);
                    levels[cell] = Some(deepest + (this.role == Role::Level) as usize);
                    open.pop();
                }
            }
        }
        Ok(levels[root].unwrap_or(0))
    }
}

/// LUTs of a slice that a cell takes (UG974, UltraScale libraries guide).
fn luts_of(kind: &str) -> usize {
    match kind {
        "RAM32M16" | "RAM64M8" => 8,
        "RAM32M" | "RAM64M" => 4,
        "RAM128X1D" | "RAM256X1S" => 4,
        "RAM64X1D" | "RAM32X1D" | "RAM128X1S" => 2,
        k if k.starts_with("LUT") || k.starts_with("SRL") || k.starts_with("RAM64X1S") || k.starts_with("RAM32X1S") => {
            1
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// q -> LUT -> carry -> LUT -> d of the flip-flop, and a LUT straight to a port.
    const TWO_LEVELS: &str = r#"{"modules": {"t": {
        "ports": {"o": {"direction": "output", "bits": [7]}},
        "netnames": {"q": {"bits": [2]}, "a": {"bits": [3]}, "d": {"bits": [5]}, "o": {"bits": [7]}, "c": {"bits": [4]}},
        "cells": {
            "ff": {"type": "FDRE", "port_directions": {"D": "input", "Q": "output"}, "connections": {"D": [5], "Q": [2]}},
            "l1": {"type": "LUT2", "port_directions": {"I0": "input", "O": "output"}, "connections": {"I0": [2], "O": [3]}},
            "cc": {"type": "CARRY8", "port_directions": {"S": "input", "O": "output"}, "connections": {"S": [3], "O": [4]}},
            "l2": {"type": "LUT6", "port_directions": {"I0": "input", "O": "output"}, "connections": {"I0": [4], "O": [5]}},
            "l3": {"type": "LUT1", "port_directions": {"I0": "input", "O": "output"}, "connections": {"I0": [2], "O": [7]}}
        }}}}"#;

    #[test]
    fn levels_count_luts_between_registers_and_not_carries() {
        let netlist = Netlist::parse(TWO_LEVELS, "t").unwrap();
        let path = netlist.deepest().unwrap();
        assert_eq!(path.levels, 2);
        assert_eq!(path.nets, ["q[0]", "a[0]", "c[0]", "d[0]"]);
        assert_eq!((netlist.luts(), netlist.flip_flops()), (3, 1));
    }

    #[test]
    fn unknown_cells_are_an_error_rather_than_free() {
        assert!(Netlist::parse(&TWO_LEVELS.replace("LUT6", "MYSTERY"), "t").is_err());
    }
}
