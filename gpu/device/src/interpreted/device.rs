//! What every device does, by the interpreter.

use std::time::Duration;

use nearpm_ptx::{CostModel, Counts};

use super::tear::tear;
use super::{Interpreted, Moment, memory};
use crate::device::{Aside, Attached, Device, Elapsed, Measured, check_range};
use crate::error::Error;
use crate::kernel::{Kernel, Launch};
use crate::medium::Medium;

impl Device for Interpreted {
    fn name(&self) -> String {
        "PTX interpreter (no GPU)".to_owned()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        self.state.borrow_mut().gpu.allocate(bytes.max(1)).map_err(memory)
    }

    fn free(&self, address: u64) -> Result<(), Error> {
        self.state.borrow_mut().gpu.free(address).map_err(memory)
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        self.state.borrow_mut().gpu.write(address, bytes).map_err(memory)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.state.borrow().gpu.read(address, bytes).map_err(memory)
    }

    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        let mut piece = vec![0; bytes as usize];
        self.download(from, &mut piece)?;
        self.upload(to, &piece)
    }

    fn copy_aside(&self, to: u64, from: u64, bytes: u64) -> Result<Aside, Error> {
        let mut state = self.state.borrow_mut();
        let number = state.next_aside;
        state.next_aside += 1;
        state.aside.push((number, to, from, bytes));
        Ok(Aside(number))
    }

    fn wait_aside(&self, copy: Aside) -> Result<(), Error> {
        let found = {
            let mut state = self.state.borrow_mut();
            let at = state.aside.iter().position(|&(number, ..)| number == copy.0);
            at.map(|at| state.aside.remove(at))
        };
        match found {
            Some((_, to, from, bytes)) => self.copy(to, from, bytes),
            None => Err(Error::Invalid("a copy that this device has not begun, or that a crash ended".to_owned())),
        }
    }

    fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error> {
        self.upload(address, &vec![byte; bytes as usize])
    }

    fn attach(&self, medium: &Medium) -> Result<Attached, Error> {
        let mut state = self.state.borrow_mut();
        let range = state.gpu.map_persistent(medium.bytes().to_vec());
        state.ranges.push(range);
        Ok(Attached { address: range.address, bytes: range.len, number: state.ranges.len() - 1 })
    }

    fn detach(&self, attached: Attached, medium: &mut Medium) -> Result<(), Error> {
        let state = self.state.borrow();
        medium.give_back(state.gpu.persistent(&state.range(&attached)))
    }

    fn pm_read(&self, pm: &Attached, _: &Medium, offset: u64, bytes: &mut [u8]) -> Result<(), Error> {
        check_range(pm, offset, bytes.len())?;
        let state = self.state.borrow();
        bytes.copy_from_slice(&state.gpu.persistent(&state.range(pm))[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn pm_write(&self, pm: &Attached, _: &mut Medium, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        check_range(pm, offset, bytes.len())?;
        let mut state = self.state.borrow_mut();
        let range = state.range(pm);
        let now = state.stores;
        if let Some(mut watching) = state.watching.take() {
            state.watch_store(&mut watching, range, offset, bytes);
            state.watching = Some(watching);
        }
        state.stores += 1;
        let crash = state.plan.filter(|plan| plan.moment == Moment::Store { after: now });
        let all = state.gpu.persistent_mut(&range).map_err(memory)?;
        let Some(plan) = crash else {
            all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            return Ok(());
        };
        tear(&mut all[offset as usize..][..bytes.len()], bytes, offset, plan.choice);
        state.crash(plan.choice)?;
        state.plan = None;
        Err(Error::Crashed(format!("store {now} of the processor, {:?}", plan.choice)))
    }

    fn launch(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        self.state.borrow_mut().launch(kernel, launch)
    }

    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }

    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Elapsed, Error> {
        let model = CostModel::default();
        let before = model.nanoseconds(&self.state.borrow().counts);
        work()?;
        let after = model.nanoseconds(&self.state.borrow().counts);
        let time = Duration::from_nanos((after - before).max(0.0) as u64);
        Ok(Elapsed { time, source: Measured::Predicted })
    }

    fn counts(&self) -> Option<Counts> {
        Some(self.state.borrow().counts)
    }

    fn free_memory(&self) -> Result<u64, Error> {
        Ok(u64::MAX)
    }
}
