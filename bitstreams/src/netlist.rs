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

/// Whether an input of a combinational cell reaches one of its outputs. A carry chain passes
/// upwards only, and each read port of a LUT RAM follows its own address: taken as one, such a cell
/// would seem to close loops that are none.
fn feeds(cell: &str, input: (&str, usize), output: (&str, usize)) -> bool {
    if cell.starts_with("CARRY") {
        return input.1 <= output.1;
    }
    if !cell.starts_with("RAM") {
        return true;
    }
    match output.0 {
        "DPO" => input.0.starts_with("DPRA"),
        "SPO" => !input.0.starts_with("DPRA"),
        read => match read.strip_prefix("DO") {
            Some(port) if !port.is_empty() => input.0.strip_prefix("ADDR") == Some(port),
            _ => true,
        },
    }
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
    /// Number of cells of each type.
    cells: BTreeMap<String, usize>,
    drivers: Vec<Driver>,
    /// Which of them drives a net.
    driver_of: HashMap<u64, usize>,
    names: HashMap<u64, String>,
    /// Nets at which paths end: inputs of registers, and outputs of the module.
    ends: Vec<u64>,
    /// Nets at the inputs of each flip-flop and block RAM.
    registers: Vec<Vec<u64>>,
}

/// What drives one net: one output of a cell.
struct Driver {
    role: Role,
    net: u64,
    /// Nets that it follows within the cycle.
    inputs: Vec<u64>,
}

/// A bit of a cell: port, index in the port, net.
type Pin<'a> = (&'a str, usize, u64);

/// The connected inputs and outputs of a cell.
fn pins(cell: &Value) -> Result<(Vec<Pin<'_>>, Vec<Pin<'_>>)> {
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for (port, bits) in cell["connections"].as_object().context("a cell without connections")? {
        let output = cell["port_directions"][port].as_str() == Some("output");
        for (index, bit) in bits.as_array().context("a port without bits")?.iter().enumerate() {
            let Some(net) = bit.as_u64() else { continue };
            (if output { &mut outputs } else { &mut inputs }).push((port.as_str(), index, net));
        }
    }
    Ok((inputs, outputs))
}

impl Netlist {
    /// Reads yosys' JSON; `top` is the module to take.
    pub fn parse(json: &str, top: &str) -> Result<Netlist> {
        let json: Value = serde_json::from_str(json).context("the netlist is not JSON")?;
        let module = &json["modules"][top];
        let Some(cells) = module["cells"].as_object() else { bail!("the netlist has no module {top}") };
        let mut netlist = Netlist {
            cells: BTreeMap::new(),
            drivers: Vec::new(),
            driver_of: HashMap::new(),
            names: HashMap::new(),
            ends: Vec::new(),
            registers: Vec::new(),
        };
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
            let (inputs, outputs) = pins(cell)?;
            let ends = inputs.iter().filter(|(port, ..)| role == Role::Register || is_sampled(&kind, port));
            netlist.ends.extend(ends.map(|&(.., net)| net));
            if role == Role::Register {
                netlist.registers.push(inputs.iter().map(|&(.., net)| net).collect());
            }
            for &(port, index, net) in &outputs {
                let follows = |&&(input, at, _): &&Pin<'_>| {
                    role != Role::Register && !is_sampled(&kind, input) && feeds(&kind, (input, at), (port, index))
                };
                let inputs = inputs.iter().filter(follows).map(|&(.., net)| net).collect();
                netlist.driver_of.insert(net, netlist.drivers.len());
                netlist.drivers.push(Driver { role, net, inputs });
            }
            *netlist.cells.entry(kind).or_default() += 1;
        }
        for port in module["ports"].as_object().context("no ports")?.values() {
            if port["direction"] == "output" {
                netlist.ends.extend(port["bits"].as_array().context("no bits")?.iter().filter_map(Value::as_u64));
            }
        }
        Ok(netlist)
    }

    /// Number of cells of each type.
    pub fn cells(&self) -> &BTreeMap<String, usize> {
        &self.cells
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
        Ok(self.deeper_than(0)?.into_iter().next().unwrap_or_default())
    }

    /// How many flip-flops and block RAMs lie behind so many levels, by that number: at the deepest
    /// of their inputs.
    pub fn registers_by_levels(&self) -> Result<Vec<u64>> {
        let levels = self.levels()?;
        let depth = |net: &u64| self.driver_of.get(net).map_or(0, |&driver| levels[driver]);
        let mut counts = Vec::new();
        for inputs in &self.registers {
            let deepest = inputs.iter().map(depth).max().unwrap_or(0);
            counts.resize(counts.len().max(deepest + 1), 0);
            counts[deepest] += 1;
        }
        Ok(counts)
    }

    /// The deepest path to each net (a bit of it stands for all) at the inputs of registers, and at
    /// outputs, that lies behind more than `limit` levels; deepest first.
    pub fn deeper_than(&self, limit: usize) -> Result<Vec<Path>> {
        let levels = self.levels()?;
        let depth = |net: &u64| self.driver_of.get(net).map_or(0, |&driver| levels[driver]);
        let mut deepest: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for net in self.ends.iter().filter(|net| depth(net) > limit) {
            let name = self.name(*net);
            let register = name.split('[').next().unwrap_or_default().to_string();
            let entry = deepest.entry(register).or_insert((0, *net));
            *entry = (*entry).max((depth(net), *net));
        }
        let mut paths: Vec<Path> = deepest.into_values().map(|(_, net)| self.path_to(net, &depth)).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.levels));
        Ok(paths)
    }

    fn path_to(&self, end: u64, depth: &impl Fn(&u64) -> usize) -> Path {
        let mut path = Path { levels: depth(&end), nets: Vec::new() };
        let mut at = Some(end);
        while let Some(net) = at {
            path.nets.push(self.name(net));
            let driver = self.driver_of.get(&net).map(|&driver| &self.drivers[driver]);
            at = driver.and_then(|driver| driver.inputs.iter().copied().max_by_key(|n| depth(n)));
        }
        path.nets.reverse();
        path.nets.dedup();
        path
    }

    fn name(&self, net: u64) -> String {
        self.names.get(&net).cloned().unwrap_or_default()
    }

    /// LUT levels behind each driver. Iterative, because carry chains make paths of thousands of
    /// cells.
    fn levels(&self) -> Result<Vec<usize>> {
        let mut levels = vec![None; self.drivers.len()];
        let mut open = vec![false; self.drivers.len()];
        for root in 0..self.drivers.len() {
            let mut stack = vec![root];
            while let Some(&driver) = stack.last() {
                let this = &self.drivers[driver];
                let below = this.inputs.iter().filter_map(|net| self.driver_of.get(net).copied());
                let next = below.clone().find(|&d| levels[d].is_none());
                match next {
                    Some(next) if levels[driver].is_none() && open[next] => {
                        bail!("a combinational loop through {}", self.loop_through(next, &stack))
                    }
                    Some(next) if levels[driver].is_none() => {
                        open[driver] = true;
                        stack.push(next);
                    }
                    _ => {
                        let deepest = below.filter_map(|d| levels[d]).max().unwrap_or(0);
                        levels[driver] = Some(deepest + usize::from(this.role == Role::Level));
                        open[driver] = false;
                        stack.pop();
                    }
                }
            }
        }
        Ok(levels.into_iter().map(|level| level.unwrap_or(0)).collect())
    }

    /// Names of the nets from `from` to the top of the stack.
    fn loop_through(&self, from: usize, stack: &[usize]) -> String {
        let members = stack.iter().skip_while(|&&driver| driver != from);
        let mut names: Vec<String> = members.map(|&driver| self.name(self.drivers[driver].net)).collect();
        names.dedup();
        names.join(" <- ")
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
        assert_eq!(netlist.registers_by_levels().unwrap(), [0, 0, 1], "the deepest of its inputs");
    }

    #[test]
    fn a_loop_is_named_and_a_carry_chain_that_passes_upwards_is_none() {
        let closed = TWO_LEVELS.replace(r#""I0": [2], "O": [3]"#, r#""I0": [5], "O": [3]"#);
        let error = Netlist::parse(&closed, "t").unwrap().deepest().unwrap_err().to_string();
        assert!(error.contains("loop") && error.contains("a[0]") && error.contains("d[0]"), "{error}");
        assert!(feeds("CARRY8", ("S", 1), ("CO", 2)) && !feeds("CARRY8", ("S", 3), ("CO", 2)));
        assert!(feeds("RAM32M16", ("ADDRB", 0), ("DOB", 1)) && !feeds("RAM32M16", ("ADDRA", 0), ("DOB", 1)));
    }

    #[test]
    fn unknown_cells_are_an_error_rather_than_free() {
        assert!(Netlist::parse(&TWO_LEVELS.replace("LUT6", "MYSTERY"), "t").is_err());
    }
}
