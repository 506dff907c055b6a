//! What was measured: lines of JSON, one for each pair.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::servers::Level;

/// What is asked of both servers of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// What a reply waits for.
    pub level: Level,
    /// `set`, or a workload of YCSB.
    pub work: String,
    /// Bytes of a value.
    pub bytes: u64,
    /// Clients at a time.
    pub clients: u64,
    /// Requests that a client sends before it waits.
    pub pipeline: u64,
}

impl Cell {
    /// SETs of Redis's protocol.
    pub fn of_sets(level: Level, bytes: u64, clients: u64, pipeline: u64) -> Cell {
        Cell { level, work: "set".to_owned(), bytes, clients, pipeline }
    }

    /// A workload of memcached's protocol.
    pub fn of_cache(level: Level, work: &str, clients: u64) -> Cell {
        Cell { level, work: work.to_owned(), bytes: crate::cache::BYTES, clients, pipeline: 1 }
    }

    /// Short values first; workloads in their own order, clients behind.
    pub fn order(&self) -> (u64, u64) {
        (self.bytes, if self.level.is_cache() { self.clients } else { 0 })
    }

    /// For people.
    pub fn name(&self) -> String {
        let Cell { level, work, bytes, clients, pipeline } = self;
        format!("{}, {work}, {bytes} B, {clients} clients, pipeline {pipeline}", level.title())
    }

    fn read(line: &Value) -> Option<Cell> {
        Some(Cell {
            level: Level::ALL.into_iter().find(|level| line["level"] == level.key())?,
            work: line["work"].as_str()?.to_owned(),
            bytes: line["bytes"].as_u64()?,
            clients: line["clients"].as_u64()?,
            pipeline: line["pipeline"].as_u64()?,
        })
    }
}

/// One server after the other.
pub struct Pair {
    /// What was asked of them.
    pub cell: Cell,
    /// How often.
    pub requests: u64,
    /// Requests of the stock server in a second.
    pub stock: f64,
    /// Of ours.
    pub ours: f64,
}

impl Pair {
    /// Ours by the stock one.
    pub fn ratio(&self) -> f64 {
        self.ours / self.stock
    }

    fn write(&self) -> Value {
        let Cell { level, work, bytes, clients, pipeline } = &self.cell;
        json!({
            "level": level.key(), "work": work, "bytes": bytes, "clients": clients, "pipeline": pipeline,
            "requests": self.requests, "stock": self.stock.round(), "ours": self.ours.round(),
        })
    }

    fn read(line: &str) -> Option<Pair> {
        let line: Value = serde_json::from_str(line).ok()?;
        Some(Pair {
            cell: Cell::read(&line)?,
            requests: line["requests"].as_u64()?,
            stock: line["stock"].as_f64()?,
            ours: line["ours"].as_f64()?,
        })
    }
}

/// All pairs, in a file or in memory alone.
pub struct Record {
    pairs: Vec<Pair>,
    file: Option<File>,
}

impl Record {
    /// Takes what a file holds already.
    ///
    /// # Errors
    /// Those of the system; a line is no pair.
    pub fn open(path: Option<&Path>) -> Result<Record> {
        let Some(path) = path else { return Ok(Record { pairs: Vec::new(), file: None }) };
        let file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let pairs = BufReader::new(&file).lines().map(|line| {
            let line = line?;
            Pair::read(&line).with_context(|| format!("{}: no pair: {line}", path.display()))
        });
        let pairs = pairs.collect::<Result<_>>()?;
        Ok(Record { pairs, file: Some(file) })
    }

    /// The pairs of a cell.
    pub fn of<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a Pair> {
        self.pairs.iter().filter(move |pair| pair.cell == *cell)
    }

    /// The cells of a level, in the order in which they were measured first.
    pub fn cells(&self, level: Level) -> Vec<&Cell> {
        let mut cells: Vec<&Cell> = Vec::new();
        for pair in self.pairs.iter().filter(|pair| pair.cell.level == level) {
            if !cells.contains(&&pair.cell) {
                cells.push(&pair.cell);
            }
        }
        cells
    }

    /// A pair more.
    ///
    /// # Errors
    /// Those of the system.
    pub fn add(&mut self, pair: Pair) -> Result<()> {
        if let Some(file) = &mut self.file {
            writeln!(file, "{}", pair.write())?;
        }
        self.pairs.push(pair);
        Ok(())
    }
}
