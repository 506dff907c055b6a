//! A batch over several GPUs under one commit record: each has a region with its log and cells; the
//! power fails for all of them at once.

use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use nearpm_gpm::{Batch, Form, Log, Shape};
use nearpm_gpu::{Choice, CrashPlan, Interpreted, Launch, Medium, Module, Moment, ObjectKind, PmRegion, Stop};

use super::{Tally, crashed};

/// Threads of each GPU's launches: one block.
const THREADS: u32 = 6;
/// Bytes of an entry: cell, old value.
const ENTRY: u64 = 12;
const BYTES: usize = 128 << 10;

/// Several GPUs.
pub struct Several {
    /// How many.
    pub devices: usize,
    /// `txn.cu`, or what was made of it.
    pub module: Module,
}

/// What a power failure leaves: an image a region.
type Images = Vec<Vec<u8>>;

struct Machine {
    devices: Vec<Rc<Interpreted>>,
    regions: Vec<PmRegion>,
}

impl Machine {
    fn started(images: &Images) -> Result<Machine> {
        let devices: Vec<Rc<Interpreted>> = images.iter().map(|_| Rc::new(Interpreted::new(4 << 20))).collect();
        let open = |(device, image): (&Rc<Interpreted>, &Vec<u8>)| {
            PmRegion::open_in(device.clone(), Medium::of_bytes(image.clone()))
        };
        let regions = devices.iter().zip(images).map(open).collect::<Result<_, _>>()?;
        Ok(Machine { devices, regions })
    }

    /// What is in persistent memory, when nothing else uses it.
    fn stopped(self) -> Result<Images> {
        self.regions.into_iter().map(|region| Ok(region.close()?.bytes().to_vec())).collect()
    }
}

impl Several {
    fn fresh(&self) -> Result<Images> {
        let make = |_| -> Result<PmRegion> {
            let device = Rc::new(Interpreted::new(4 << 20));
            let region = PmRegion::create_in(device, Medium::of_bytes(vec![0; BYTES]))?;
            Log::create_hcl(&region, "log", Shape { blocks: 1, threads: THREADS }, ENTRY, 1, Form::Sealed)?;
            region.add("cells", ObjectKind::Data, 8 * u64::from(THREADS), |_| Ok(()))?;
            Ok(region)
        };
        let regions = (0..self.devices).map(make).collect::<Result<Vec<_>>>()?;
        Batch::create_over(&regions.iter().collect::<Vec<_>>(), "batch")?;
        self.update(&regions, 1)?;
        regions.into_iter().map(|region| Ok(region.close()?.bytes().to_vec())).collect()
    }

    /// One batch: each GPU gives its cells new values.
    fn update(&self, regions: &[PmRegion], seed: u32) -> Result<()> {
        let logs = regions.iter().map(|region| Log::open(region, "log")).collect::<Result<Vec<_>, _>>()?;
        let logs: Vec<&Log> = logs.iter().collect();
        let batch = Batch::open(&regions[0], "batch")?;
        let active = batch.begin(&logs)?;
        for (region, log) in regions.iter().zip(&logs) {
            let cells = region.find("cells", ObjectKind::Data)?.offset;
            let arguments = [log.address().into(), region.address(cells).into(), 1u32.into(), seed.into()];
            region.device().launch(self.module.kernel("update_sealed"), &Launch::new(1, THREADS, arguments))?;
        }
        active.commit()?;
        Ok(())
    }

    fn recover(&self, regions: &[PmRegion]) -> Result<()> {
        let logs = regions.iter().map(|region| Log::open(region, "log")).collect::<Result<Vec<_>, _>>()?;
        let logs: Vec<&Log> = logs.iter().collect();
        Batch::open(&regions[0], "batch")?.recover(&logs, || {
            for (region, log) in regions.iter().zip(&logs) {
                let cells = region.find("cells", ObjectKind::Data)?.offset;
                let arguments = [log.address().into(), region.address(cells).into()];
                region.device().launch(self.module.kernel("undo_sealed"), &Launch::new(1, THREADS, arguments))?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// All cells of all GPUs are of one batch: that before, or the one that was crashed.
    fn check(&self, images: &Images, finished: bool) -> Result<()> {
        let machine = Machine::started(images)?;
        self.recover(&machine.regions)?;
        let mut cells = Vec::new();
        for region in &machine.regions {
            let place = region.find("cells", ObjectKind::Data)?.offset;
            let bytes = region.read_vec(place, 8 * THREADS as usize)?;
            cells.extend((0..).zip(bytes.as_chunks::<8>().0.iter().map(|&cell| u64::from_le_bytes(cell))));
        }
        let all = |seed: u32| cells.iter().all(|&(cell, value)| value == super::transactions::value_of(cell, seed));
        let (old, new) = (all(1), all(2));
        ensure!(old || new, "neither all old nor all new: {cells:x?}");
        ensure!(new || !finished, "a batch that was committed is gone");
        Ok(())
    }

    /// Does something that the power failure of one GPU's plan ends for all of them. Gives what is
    /// left, and whether it ended before.
    fn crash(
        &self,
        images: &Images,
        plan: Option<(usize, CrashPlan)>,
        act: impl FnOnce(&[PmRegion]) -> Result<()>,
    ) -> Result<(Images, bool)> {
        let machine = Machine::started(images)?;
        if let Some((device, plan)) = plan {
            machine.devices[device].plan_crash(Some(plan));
        }
        let finished = match act(&machine.regions) {
            Ok(()) => true,
            Err(error) if crashed(&error) => {
                machine.devices.iter().try_for_each(|device| device.crash())?;
                false
            }
            Err(error) => return Err(error),
        };
        machine.devices.iter().for_each(|device| device.plan_crash(None));
        Ok((machine.stopped()?, finished))
    }

    /// All moments of a batch, in each of the GPUs; after each a recovery, and one that is crashed,
    /// too.
    ///
    /// # Errors
    /// The first failure.
    pub fn run(&self, choices: &[Choice]) -> Result<Tally> {
        let images = self.fresh()?;
        let (done, finished) = self.crash(&images, None, |regions| self.update(regions, 2))?;
        ensure!(finished, "it crashed without a plan");
        self.check(&done, true)?;
        let mut tally = Tally::default();
        for device in 0..self.devices {
            // The log is mounted by the first launch, the batch's is the second.
            for launch in 0..2 {
                let moments = (1..).map(|event| Moment::Launch { after: launch, stop: Stop::PersistEvent(event) });
                self.crash_at(&images, device, moments, choices, &mut tally)?;
            }
            self.crash_at(&images, device, (0..).map(|after| Moment::Store { after }), choices, &mut tally)?;
        }
        Ok(tally)
    }

    /// Moments of one GPU, up to the first that does not come.
    fn crash_at(
        &self,
        images: &Images,
        device: usize,
        moments: impl Iterator<Item = Moment>,
        choices: &[Choice],
        tally: &mut Tally,
    ) -> Result<()> {
        for moment in moments {
            for &choice in choices {
                let plan = CrashPlan { moment, choice };
                let said = || format!("GPU {device}, {plan:?}");
                let (left, finished) =
                    self.crash(images, Some((device, plan)), |regions| self.update(regions, 2)).with_context(said)?;
                if finished {
                    return Ok(());
                }
                tally.crashes += 1;
                tally.images += 1;
                self.check(&left, false).with_context(said)?;
                let again = (tally.crashes as usize % self.devices, second(tally.crashes, choice));
                let (left, _) = self.crash(&left, Some(again), |regions| self.recover(regions)).with_context(said)?;
                self.check(&left, false).with_context(|| format!("then {again:?}")).with_context(said)?;
                tally.second_crashes += 1;
            }
        }
        Ok(())
    }
}

/// A moment of a recovery: a store of the processor or one of the kernels'.
fn second(number: u64, choice: Choice) -> CrashPlan {
    let moment = match number % 3 {
        0 => Moment::Store { after: number / 3 % 3 },
        launch => Moment::Launch { after: launch - 1, stop: Stop::PersistEvent(1 + number / 3 % 5) },
    };
    CrashPlan { moment, choice }
}
