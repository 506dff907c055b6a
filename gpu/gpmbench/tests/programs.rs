//! CFD, DNN, HS, BLK, SRAD and BFS on the interpreter: against oracles, and crashed.

use std::rc::Rc;

use anyhow::Result;
use nearpm_gpmbench::crash::{Campaign, Resumed, run_whole};
use nearpm_gpmbench::programs::{
    Bfs, BlackScholes, Cfd, Digits, Dnn, Graph, Hotspot, Iterative, Mesh, Net, Srad, Stepper, flow_of, image_of,
    is_price, learnt_by, levels_of, prices_of, share_told, temperatures_of,
};
use nearpm_gpu::{Buffer, Device, Interpreted, Medium, PmRegion};

const ITERATIONS: u32 = 5;
/// Iterations from checkpoint to checkpoint.
const EVERY: u32 = 2;

fn bytes_of<T: Copy, const N: usize>(values: &[T], bytes: fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|&value| bytes(value)).collect()
}

fn fresh(bytes: u64) -> PmRegion {
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
    PmRegion::create_in(device, Medium::of_bytes(vec![0; bytes as usize])).unwrap()
}

/// Crashes a program; its result is always the one without a crash.
fn crashed(bytes: u64, every: u64, least: u64, run: impl Fn(&PmRegion) -> Result<Vec<u8>>) {
    let expected = run(&fresh(bytes)).unwrap();
    let scenario = Resumed { bytes, run: Box::new(run), expected };
    run_whole(&scenario).unwrap();
    let tally = Campaign::sampled(every).run(&scenario).unwrap_or_else(|error| panic!("{error:#}"));
    eprintln!("{tally:?}");
    assert!(tally.crashes >= least && tally.second_crashes >= least, "{tally:?}");
}

fn iterated<S: Stepper>(region: &PmRegion, program: S, result: impl Fn(&S) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let mut iterative = Iterative::open(region, program, EVERY)?;
    assert!(iterative.done() <= ITERATIONS && iterative.done().is_multiple_of(EVERY));
    iterative.run_until(ITERATIONS)?;
    result(&iterative.program)
}

fn hotspot(region: &PmRegion) -> Result<Vec<u8>> {
    let temperatures = |program: &Hotspot| Ok(bytes_of(&program.temperatures()?, f32::to_le_bytes));
    iterated(region, Hotspot::new(region.device(), 12, 20)?, temperatures)
}

#[test]
fn temperatures_are_those_of_the_processor_bit_by_bit() {
    let expected = bytes_of(&temperatures_of(12, 20, ITERATIONS), f32::to_le_bytes);
    assert_eq!(hotspot(&fresh(1 << 18)).unwrap(), expected);
}

#[test]
fn hotspot_goes_on() {
    crashed(1 << 18, 8, 10, hotspot);
}

fn prices(program: &BlackScholes) -> Result<Vec<u8>> {
    let (calls, puts) = program.prices()?;
    Ok(bytes_of(&[calls, puts].concat(), f32::to_le_bytes))
}

#[test]
fn prices_are_those_of_the_processor() {
    let region = fresh(1 << 18);
    let mut program = Iterative::open(&region, BlackScholes::new(region.device(), 150).unwrap(), EVERY).unwrap();
    program.run_until(ITERATIONS).unwrap();
    let (calls, puts) = program.program.prices().unwrap();
    for option in 0..150 {
        let expected = prices_of(option, ITERATIONS);
        for (found, expected) in [calls[option], puts[option]].into_iter().zip(expected) {
            assert!(is_price(found, expected), "{found} for {expected}");
        }
    }
}

#[test]
fn black_scholes_goes_on() {
    crashed(1 << 18, 8, 10, |region| iterated(region, BlackScholes::new(region.device(), 100)?, prices));
}

fn srad(region: &PmRegion) -> Result<Vec<u8>> {
    let program = Srad::open(region, 10, 16)?;
    program.run_until(u64::from(ITERATIONS))?;
    Ok(bytes_of(&program.image()?, f32::to_le_bytes))
}

#[test]
fn images_are_those_of_the_processor() {
    let found = srad(&fresh(Srad::region_bytes(10, 16))).unwrap();
    let found = found.as_chunks::<4>().0.iter().map(|&value| f32::from_le_bytes(value));
    for (found, expected) in found.zip(image_of(10, 16, ITERATIONS.into())) {
        assert!((f64::from(found) - expected).abs() <= 0.001 * expected, "{found} for {expected}");
    }
}

#[test]
fn srad_goes_on() {
    crashed(Srad::region_bytes(10, 16), 2, 20, srad);
}

#[test]
fn bfs_goes_on() {
    let graph = Graph::roads(12, 6, 1);
    let run = |region: &PmRegion| {
        let mut program = Bfs::open(region, &graph)?.with_blocks(2);
        assert_eq!(program.run()?, u64::from(*levels_of(&graph).iter().max().unwrap()));
        Ok(bytes_of(&program.levels()?, u32::to_le_bytes))
    };
    let levels = levels_of(&graph);
    assert!(levels.iter().all(|&level| level != u32::MAX) && levels.iter().any(|&level| level >= 11));
    assert_eq!(run(&fresh(Bfs::region_bytes(&graph))).unwrap(), bytes_of(&levels, u32::to_le_bytes));
    crashed(Bfs::region_bytes(&graph), 2, 20, run);
}

/// The smallest that has a body and a far side.
const MESH: u32 = 42;

fn flow(region: &PmRegion) -> Result<Vec<u8>> {
    let values = |program: &Cfd| Ok(bytes_of(&program.variables()?, f32::to_le_bytes));
    iterated(region, Cfd::new(region.device(), &Mesh::around_a_rod(MESH))?, values)
}

#[test]
fn flows_are_those_of_the_processor_bit_by_bit() {
    let expected = flow_of(&Mesh::around_a_rod(MESH), ITERATIONS);
    assert!(expected.iter().all(|value| value.is_finite()) && expected[0] != expected[1], "the gas does not move");
    assert_eq!(flow(&fresh(1 << 18)).unwrap(), bytes_of(&expected, f32::to_le_bytes));
}

#[test]
fn cfd_goes_on() {
    crashed(1 << 18, 16, 10, flow);
}

/// The smallest: the kernels are those of the paper's sizes.
const NET: Net = Net { side: 16, maps: [2, 3], hidden: 6, batch: 4 };

fn learnt(region: &PmRegion) -> Result<Vec<u8>> {
    let weights = |program: &Dnn| Ok(bytes_of(&program.learnt()?, f32::to_le_bytes));
    iterated(region, Dnn::new(region.device(), NET, &Digits::new(16, 10))?, weights)
}

#[test]
fn what_a_net_learns_is_what_the_processor_learns_bit_by_bit() {
    let expected = learnt_by(NET, &Digits::new(16, 10), ITERATIONS);
    assert_eq!(learnt(&fresh(1 << 18)).unwrap(), bytes_of(&expected, f32::to_le_bytes));
}

#[test]
fn a_net_learns() {
    let (net, digits) = (Net { side: 16, maps: [4, 6], hidden: 20, batch: 20 }, Digits::new(16, 100));
    let before = share_told(net, &learnt_by(net, &digits, 0), &digits);
    let after = share_told(net, &learnt_by(net, &digits, 150), &digits);
    eprintln!("{before} of the pictures told before, {after} after");
    assert!(before < 0.4 && after > 0.8, "{before} of the pictures told before, {after} after");
}

#[test]
fn dnn_goes_on() {
    crashed(1 << 18, 16, 10, learnt);
}

/// Bytes of the paper's table 1: 3.2 MB, which are both copies of a checkpoint.
#[test]
fn the_papers_net_has_the_papers_weights() {
    let device: Rc<dyn Device> = Rc::new(Interpreted::new(64 << 20));
    let layers = Dnn::new(&device, Net::PAPER, &Digits::new(28, 1)).unwrap();
    let bytes = |state: Vec<(&'static str, &Buffer)>| state.iter().map(|(_, buffer)| buffer.bytes()).sum::<u64>();
    assert_eq!(bytes(layers.state()), 4 * 431_080);
}
