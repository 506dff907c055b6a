//! Growing: design N a window at a time between batches, design P by a new top level (the paper's
//! resize).
//!
//! Pairs are copied to what is not in use yet; one store of a sealed word takes it into use; then
//! copies that were left are cleared. A crash anywhere leaves either what was there before, or what
//! the table has grown to, with copies that recovery clears.

use nearpm_gpu::{Error as DeviceError, PmRegion};
use nearpm_interface::region::{GrowthPhase, OBJECT_GROWTH, growth_word, open_growth_word};
use nearpm_interface::seal;

use crate::descriptor::Descriptor;
use crate::error::{Error, Result};
use crate::layout::{Design, Layout};
use crate::table::Table;

/// Words of the counts: `GPH_STASHED`, `GPH_UNMOVED`, `GPH_LEFT`.
const STASHED: u64 = 4;
const UNMOVED: u64 = 11;
const LEFT: u64 = 12;

impl Table {
    /// Windows in use of a table in windows; 1.
    pub fn windows_in_use(&self) -> u32 {
        match self.layout().design {
            Design::Levels => 1,
            Design::Tags => self.grown.get(),
        }
    }

    /// Slots in use, without the stash.
    pub fn slots_in_use(&self) -> u64 {
        let layout = self.layout();
        match layout.design {
            Design::Levels => layout.slots_grown(self.grown.get()),
            Design::Tags => layout.slots() / u64::from(layout.windows) * u64::from(self.grown.get()),
        }
    }

    /// Whether a key has found no slot but in the stash of a table in windows.
    ///
    /// # Errors
    /// What a kernel did wrong.
    pub fn stash_is_used(&self) -> Result<bool> {
        Ok(self.counted(STASHED)? != 0)
    }

    /// Whether its object has room for it to grow. A volatile copy has none.
    pub fn can_grow(&self) -> bool {
        self.copy.is_none() && self.has_room()
    }

    fn has_room(&self) -> bool {
        match self.layout().design {
            Design::Levels => self.grown.get() < self.layout().growths,
            Design::Tags => self.grown.get() < self.layout().room_windows(),
        }
    }

    /// Lets it grow by up to so many windows, or a level. Batches run before and behind it, not
    /// meanwhile: a program that lets it grow by a few windows before each batch never waits for
    /// long.
    ///
    /// # Errors
    /// [`Error::NoRoom`]; [`Error::Unmoved`]: the table is what it was then; what the device
    /// refuses.
    pub fn grow(&self, windows: u32) -> Result<()> {
        if self.copy.is_some() {
            let what = "a volatile copy does not grow: let the table itself grow, and copy it again";
            return Err(Error::Invalid(what.to_owned()));
        }
        if !self.can_grow() {
            return Err(Error::NoRoom { growths: self.layout().growths });
        }
        match self.layout().design {
            Design::Levels => self.grow_by_level(),
            Design::Tags => {
                (0..windows).take_while(|_| self.can_grow()).try_for_each(|_| self.grow_by_window())?;
                self.unstash()
            }
        }
    }

    fn grow_by_window(&self) -> Result<()> {
        let to = self.grown.get();
        let from = source_of(self.layout(), to);
        self.note(to, GrowthPhase::Copying)?;
        let epoch = self.begin_epoch(0)?;
        let copied = self.copied(&[epoch.into(), from.into(), to.into()], self.window_slots());
        if let Err(error @ Error::Unmoved { .. }) = copied {
            self.clear_window(to, to)?;
            self.note(to, GrowthPhase::Idle)?;
            return Err(error);
        }
        copied?;
        self.note(to + 1, GrowthPhase::Clearing)?;
        self.in_use(to + 1)?;
        self.clear_window(from, to)?;
        self.note(to + 1, GrowthPhase::Idle)
    }

    fn grow_by_level(&self) -> Result<()> {
        let grown = self.grown.get();
        let layout = self.layout();
        let lowest = u64::from(layout.buckets << grown >> (layout.levels - 1)) * u64::from(layout.width);
        self.note(grown, GrowthPhase::Copying)?;
        let copied = self.copied(&[layout.first_bucket(grown + 1).into()], lowest);
        if let Err(error @ Error::Unmoved { .. }) = copied {
            self.clear_level(grown + 1)?;
            self.note(grown, GrowthPhase::Idle)?;
            return Err(error);
        }
        copied?;
        self.note(grown + 1, GrowthPhase::Idle)?;
        self.in_use(grown + 1)
    }

    /// Copies pairs to what it is to grow by.
    fn copied(&self, arguments: &[nearpm_gpu::Argument], slots: u64) -> Result<()> {
        self.count_anew(UNMOVED)?;
        self.launch("gph_grow_copy", slots, arguments)?;
        match self.counted(UNMOVED)? {
            0 => Ok(()),
            unmoved => Err(Error::Unmoved { unmoved }),
        }
    }

    /// Brings home what is in the stash, as far as there is room now.
    fn unstash(&self) -> Result<()> {
        if self.layout().stash == 0 {
            return Ok(());
        }
        self.count_anew(LEFT)?;
        let epoch = self.begin_epoch(0)?;
        self.launch("gph_unstash", self.layout().stash_slots(), &[epoch.into()])?;
        if self.counted(LEFT)? == 0 {
            self.count_anew(STASHED)?;
        }
        Ok(())
    }

    /// What recovery does first: clears what a growth that was cut off has left.
    pub(crate) fn end_growth(&self) -> Result<()> {
        let (grown, phase) = read_growth(&self.region, self.object.offset, self.layout())?;
        self.in_use(grown)?;
        match (phase, self.layout().design) {
            (GrowthPhase::Idle, _) => return Ok(()),
            (GrowthPhase::Copying, Design::Levels) => self.clear_level(grown + 1)?,
            (GrowthPhase::Copying, Design::Tags) => self.clear_window(grown, grown)?,
            (GrowthPhase::Clearing, _) => self.clear_window(source_of(self.layout(), grown - 1), grown - 1)?,
        }
        self.note(grown, GrowthPhase::Idle)
    }

    /// Clears keys of a window that belong to window `of`.
    fn clear_window(&self, window: u32, of: u32) -> Result<()> {
        self.launch("gph_grow_clear", self.window_slots(), &[window.into(), of.into()])
    }

    fn clear_level(&self, number: u32) -> Result<()> {
        let layout = self.layout();
        let buckets = layout.buckets << number;
        let slots = u64::from(buckets) * u64::from(layout.width);
        self.launch("gph_grow_clear", slots, &[layout.first_bucket(number).into(), buckets.into()])
    }

    fn window_slots(&self) -> u64 {
        self.layout().slots() / u64::from(self.layout().windows)
    }

    /// Stores durably what it is doing. Everything that was launched has persisted before.
    fn note(&self, grown: u32, phase: GrowthPhase) -> Result<()> {
        Ok(self.region.write_sealed_word(self.object.offset + OBJECT_GROWTH, growth_word(grown, phase))?)
    }

    /// Tells kernels what is in use.
    fn in_use(&self, grown: u32) -> Result<()> {
        self.grown.set(grown);
        let (descriptor, layout) = (self.descriptor(), *self.layout());
        self.describe(match layout.design {
            Design::Tags => Descriptor { used: grown, ..descriptor },
            Design::Levels => {
                Descriptor { buckets: layout.buckets << grown, starts: layout.starts(grown), ..descriptor }
            }
        })
    }

    fn count_anew(&self, count: u64) -> Result<()> {
        Ok(self.device().fill(self.counts.address() + 4 * count, 0, 4)?)
    }

    fn counted(&self, count: u64) -> Result<u32> {
        Ok(self.counts.download_words()?[count as usize])
    }
}

/// The window whose keys window `to` takes a half of.
fn source_of(layout: &Layout, to: u32) -> u32 {
    to - (layout.windows << (to / layout.windows).ilog2())
}

/// What the table of an object has in use, and what it was doing.
pub(crate) fn read_growth(region: &PmRegion, offset: u64, layout: &Layout) -> Result<(u32, GrowthPhase)> {
    let mut word = [0; 8];
    region.read(offset + OBJECT_GROWTH, &mut word)?;
    let word = u64::from_le_bytes(word);
    let (least, most) = match layout.design {
        Design::Levels => (0, layout.growths),
        Design::Tags => (layout.windows, layout.room_windows()),
    };
    if word == 0 {
        return Ok((least, GrowthPhase::Idle));
    }
    let holds = |&(grown, phase): &(u32, GrowthPhase)| match phase {
        GrowthPhase::Idle => (least..=most).contains(&grown),
        GrowthPhase::Copying => (least..most).contains(&grown),
        GrowthPhase::Clearing => layout.design == Design::Tags && (least + 1..=most).contains(&grown),
    };
    let damaged: DeviceError =
        region.corrupt("the word of a table's growth does not hold".to_owned(), offset + OBJECT_GROWTH);
    seal::open_word(word).and_then(open_growth_word).filter(holds).ok_or(damaged.into())
}
