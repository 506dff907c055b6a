//! Checks a launch and makes its state.

use std::sync::Arc;

use crate::code::{Code, Variables};
use crate::counting::Translation;
use crate::machine::{Last, Running, Shape};
use crate::memory::{Kind, Memory, MemoryError};
use crate::persist::Tracker;
use crate::schedule::Picker;
use crate::{ArgumentError, Arguments, Counts, Launch, LaunchError, Persistence, Run, Stop};

/// Shared memory that a block can have on the card that this models.
const MOST_SHARED: u64 = 227 << 10;

/// Threads whose observations are tracked at most: they take some 60 bytes each before they have
/// stored anything.
const MOST_TRACKED: u64 = 1 << 24;

/// A module's variables in device memory.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub variables: Arc<Variables>,
    pub global: u64,
    pub constant: u64,
}

impl Loaded {
    pub fn new(memory: &mut Memory, variables: &Arc<Variables>) -> Result<Loaded, MemoryError> {
        let (global, constant) = (&variables.global, &variables.constant);
        let loaded = Loaded {
            variables: variables.clone(),
            global: memory.allocate(global.bytes.len() as u64, Kind::Device)?,
            constant: memory.allocate(constant.bytes.len() as u64, Kind::Constant)?,
        };
        for (address, image) in [(loaded.global, global), (loaded.constant, constant)] {
            let size = image.bytes.len() as u64;
            let Some(to) = memory.slice_mut(address, size) else { continue };
            to.copy_from_slice(&image.bytes);
            for &(offset, base, place) in &image.addresses {
                let value = loaded.base(base).wrapping_add(place);
                to[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        Ok(loaded)
    }

    pub fn base(&self, base: crate::code::Base) -> u64 {
        match base {
            crate::code::Base::Const => self.constant,
            _ => self.global,
        }
    }
}

/// The parameters' bytes.
fn parameters(code: &Code, arguments: &Arguments) -> Result<Vec<u8>, ArgumentError> {
    let (values, expected) = (arguments.values(), &code.parameters);
    if values.len() != expected.len() {
        let (expected, given) = (expected.len(), values.len());
        return Err(ArgumentError::Count { kernel: code.name.clone(), expected, given });
    }
    let mut bytes = vec![0; code.parameter_bytes];
    for (index, (value, parameter)) in values.iter().zip(expected).enumerate() {
        if value.len() != parameter.bytes {
            return Err(ArgumentError::Size {
                kernel: code.name.clone(),
                index,
                parameter: parameter.name.clone(),
                expected: parameter.bytes,
                given: value.len(),
            });
        }
        bytes[parameter.offset..parameter.offset + value.len()].copy_from_slice(value);
    }
    Ok(bytes)
}

fn check_shape(code: &Code, launch: &Launch, run: &Run) -> Result<(), String> {
    let [x, y, z] = launch.block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    if threads == 0 || threads > 1024 || z > 64 {
        return Err(format!("a block of {x} x {y} x {z} threads; 1 to 1024 are possible, z up to 64"));
    }
    if let Some(most) = code.most_threads.filter(|&most| threads > most) {
        return Err(format!("a block of {threads} threads; the kernel is made for {most}"));
    }
    let [x, y, z] = launch.grid;
    if x == 0 || y == 0 || z == 0 || x > i32::MAX as u32 || y > 65535 || z > 65535 {
        return Err(format!("a grid of {x} x {y} x {z} blocks; 1 to 2147483647 x 65535 x 65535 are possible"));
    }
    let shared = code.shared_bytes + u64::from(launch.shared_bytes);
    if shared > MOST_SHARED {
        return Err(format!("{shared} bytes of shared memory; a block can have {MOST_SHARED}"));
    }
    if matches!(run.stop_at, Stop::PersistEvent(_)) && run.persistence == Persistence::Off {
        return Err("stopping at a persist event needs Persistence::Counted or Persistence::Tracked".into());
    }
    Ok(())
}

/// The state of a launch before its first step.
pub(crate) fn start(
    code: &Arc<Code>,
    launch: &Launch,
    run: &Run,
    loaded: &Loaded,
    resident: u32,
    launch_number: u64,
) -> Result<Running, LaunchError> {
    let refuse = |reason| LaunchError::Shape { kernel: code.name.clone(), reason };
    let parameters = parameters(code, &launch.arguments)?;
    check_shape(code, launch, run).map_err(refuse)?;
    let shape = Shape {
        code: code.clone(),
        constants: Shape::constants(code, loaded.global, loaded.constant),
        parameters,
        grid: launch.grid,
        block: launch.block,
        shared_bytes: code.shared_bytes + u64::from(launch.shared_bytes),
        dynamic_bytes: launch.shared_bytes,
        resident: resident.max(1),
        launch_number,
    };
    let threads = shape.blocks().saturating_mul(shape.threads_a_block());
    let tracker = match run.persistence {
        Persistence::Tracked if threads > MOST_TRACKED => {
            return Err(refuse(format!("{threads} threads; what persists can be tracked for up to {MOST_TRACKED}")));
        }
        Persistence::Tracked => Some(Tracker::new(threads, shape.threads_a_block())),
        _ => None,
    };
    Ok(Running {
        blocks: Vec::new(),
        next_block: 0,
        counts: Counts::default(),
        persistence: run.persistence,
        tracker,
        translation: Translation::default(),
        picker: Picker::new(run.schedule.clone()),
        last: Last { block: 0, warp: 0, lane: 32, gave_way: false },
        cursor: (0, usize::MAX),
        unfinished: None,
        scratch: Box::new([0; crate::lanes::WARP]),
        faulted: false,
        shape,
    })
}
