//! The function of one process: its registers, its command pages, and the card's memory.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nearpm_driver::CardError;
use nearpm_endpoint::bus::Bus;
use nearpm_endpoint::lines::{lines, load_registers, register_stores, stores};
use nearpm_endpoint::{Device, HandedOn};
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, COMMAND_PAGE_BYTES, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, PM_BAR,
    REGISTER_BAR, REGISTER_BAR_BYTES, SAVE_BASE, SAVE_BYTES,
};
use nearpm_interface::registers::{self as reg, capability, control};
use nearpm_interface::sharing::{self, action, outcome};

use crate::claims::Seat;
use crate::share::{SEATS, Share};
use crate::traffic::Traffic;

/// What belongs to the card as a whole: no process may store there.
const OF_THE_CARD: [Range<u64>; 2] =
    [SAVE_BASE..SAVE_BASE + SAVE_BYTES, FIRMWARE_BASE..FIRMWARE_BASE + FIRMWARE_SLOTS as u64 * FIRMWARE_SLOT_BYTES];
/// Nanoseconds between two looks for commands that have ended.
const LOOK_NS: u64 = 20_000;
/// How long nobody looks while nothing is under way, in case somebody forgot to say so.
const IDLE: Duration = Duration::from_millis(50);

/// The pool that the next action is about.
#[derive(Clone, Copy, Default)]
struct Claim {
    pool: u32,
    base: u64,
    bytes: u64,
    outcome: u32,
}

struct State {
    traffic: Traffic,
    claim: Claim,
    device_number: u32,
    has_left: bool,
    /// The card did not answer this process in time: everything reads all ones for it. The others
    /// go on.
    is_lost: bool,
}

/// What the function and who looks for ended commands have in common.
struct Common {
    share: Arc<Share>,
    seat: Seat,
    state: Mutex<State>,
    work: Condvar,
}

/// The function of one process, as long as it is connected.
pub struct Client {
    common: Arc<Common>,
    looks: Option<JoinHandle<()>>,
}

impl Client {
    /// For a process that has taken a seat; `None` where the system gives no thread for it.
    ///
    /// # Errors
    /// If the card fails.
    pub fn new(share: Arc<Share>, seat: Seat) -> Result<Option<Client>, CardError> {
        let traffic = Traffic::new(&share, seat)?;
        let state = State { traffic, claim: Claim::default(), device_number: 0, has_left: false, is_lost: false };
        let common = Arc::new(Common { share, seat, state: Mutex::new(state), work: Condvar::new() });
        let looking = common.clone();
        let looks = std::thread::Builder::new().spawn(move || looking.look()).ok();
        Ok(looks.map(|looks| Client { common, looks: Some(looks) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.common.state()
    }

    /// Does something with the card, unless it or this process is given up.
    fn try_with<R>(&self, act: impl FnOnce(&mut State, &Share) -> Result<R, CardError>) -> Option<R> {
        let share = &*self.common.share;
        let mut state = self.state();
        if !share.works() || state.is_lost {
            return None;
        }
        let done = act(&mut state, share);
        self.common.work.notify_one();
        done.inspect_err(|error| state.give_up(share, error)).ok()
    }
}

impl Common {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the process of ended commands until it has left.
    fn look(&self) {
        loop {
            let mut state = self.state();
            if state.has_left || !self.share.works() {
                return;
            }
            if let Err(error) = state.traffic.take_ended(&self.share) {
                return state.give_up(&self.share, &error);
            }
            if state.traffic.is_idle() {
                drop(self.work.wait_timeout(state, IDLE));
            } else {
                drop(state);
                self.share.card.function().relax(LOOK_NS);
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.state().has_left = true;
        self.common.work.notify_one();
        if let Some(looks) = self.looks.take() {
            // It has no result, and a panic of it was printed.
            let _ = looks.join();
        }
        let (share, mut state) = (&*self.common.share, self.state());
        state.traffic.bus.forget_host();
        // What it had posted may take the card longer than anybody waits: its page is nobody's
        // until then.
        while share.works() {
            match state.traffic.forget(share) {
                Ok(()) => return share.leave_seat(self.common.seat),
                Err(CardError::Timeout { .. }) => {}
                Err(error) => share.fail(&error),
            }
        }
    }
}

impl State {
    /// Gives the card up, or, where it only takes too long, this process.
    fn give_up(&mut self, share: &Share, error: &CardError) {
        match error {
            CardError::Timeout { .. } => {
                eprintln!("nearpm card share: a process is given up: {error}");
                self.is_lost = true;
            }
            _ => share.fail(error),
        }
    }

    fn register(&self, share: &Share, seat: Seat, offset: u32) -> u32 {
        let of_card = || share.card.registers().read(offset);
        let own = |mask: u32| mask & u32::from(share.claims().mask(seat));
        if let Some(value) = self.traffic.ring_register(offset) {
            return value;
        }
        match offset {
            reg::CAPABILITIES => of_card() & !capability::PEERS | capability::SHARED,
            reg::MAPPED | reg::LATCHED => own(of_card()),
            reg::DEVICE_NUMBER => self.device_number,
            reg::PARKED..=reg::PARKED_ACT => 0,
            sharing::SEAT => u32::from(seat) | (SEATS as u32) << 8,
            sharing::CLAIM_POOL => self.claim.pool,
            sharing::CLAIM_OUTCOME => self.claim.outcome,
            _ => of_card(),
        }
    }

    /// What is for the card as a whole has no effect: firmware, shutdown, a loss.
    fn set_register(&mut self, share: &Share, seat: Seat, offset: u32, value: u32) -> Result<(), CardError> {
        let low = |word: u64| word >> 32 << 32 | u64::from(value);
        let high = |word: u64| word & 0xffff_ffff | u64::from(value) << 32;
        let claim = &mut self.claim;
        match offset {
            reg::CONTROL if value & control::FUNCTION_RESET != 0 => self.traffic.forget(share)?,
            reg::DEVICE_NUMBER => self.device_number = value,
            sharing::CLAIM_POOL => claim.pool = value,
            sharing::CLAIM_BASE => claim.base = low(claim.base),
            sharing::CLAIM_BASE_HI => claim.base = high(claim.base),
            sharing::CLAIM_BYTES => claim.bytes = low(claim.bytes),
            sharing::CLAIM_BYTES_HI => claim.bytes = high(claim.bytes),
            sharing::CLAIM_ACT => claim.outcome = act(share, seat, value, *claim),
            _ => drop(self.traffic.set_ring_register(offset, value)),
        }
        Ok(())
    }

    fn load_status(&mut self, share: &Share, offset: u64, data: &mut [u8]) -> Result<(), CardError> {
        let mut done = 0;
        for (line, first, part) in lines(offset, data.len()) {
            let status = self.traffic.status(share, line as usize / COMMAND_PAGE_BYTES)?.to_bytes();
            data[done..done + part].copy_from_slice(&status[first..first + part]);
            done += part;
        }
        Ok(())
    }
}

/// What of the areas lies outside a range.
fn without(areas: &[Range<u64>], range: &Range<u64>) -> Vec<Range<u64>> {
    let outside = |area: &Range<u64>| [area.start..area.end.min(range.start), area.start.max(range.end)..area.end];
    areas.iter().flat_map(outside).filter(|area| !area.is_empty()).collect()
}

/// Carries out an action on what processes claim.
fn act(share: &Share, seat: Seat, action: u32, claim: Claim) -> u32 {
    let mut claims = share.claims();
    match action {
        action::CLAIM => return claims.claim(seat, claim.pool, claim.base, claim.bytes, share.card.pm_bytes()),
        action::GIVE_BACK => claims.give_back(seat, claim.pool),
        action::LOCK => return claims.lock(seat),
        action::UNLOCK => claims.unlock(seat),
        _ => return outcome::REFUSED,
    }
    outcome::DONE
}

impl Device for Client {
    fn bar_bytes(&self, bar: usize) -> u64 {
        match bar {
            REGISTER_BAR => REGISTER_BAR_BYTES as u64,
            COMMAND_BAR => COMMAND_BAR_BYTES as u64,
            PM_BAR => self.common.share.card.pm_bytes(),
            _ => 0,
        }
    }

    fn shared_bar(&self, bar: usize) -> Option<HandedOn> {
        let of_card = self.common.share.card.function().hand_on(bar).filter(|_| bar == PM_BAR)?;
        let areas = OF_THE_CARD.iter().fold(of_card.areas.clone(), |areas, range| without(&areas, range));
        Some(HandedOn { areas, ..of_card })
    }

    fn is_present(&mut self) -> bool {
        self.common.share.works() && !self.state().is_lost
    }

    fn load(&mut self, bar: usize, offset: u64, data: &mut [u8]) {
        let (seat, inside) = (self.common.seat, offset.checked_add(data.len() as u64));
        if inside.is_none_or(|end| end > self.bar_bytes(bar)) {
            return;
        }
        let loaded = self.try_with(|state, share| match bar {
            REGISTER_BAR => {
                load_registers(offset, data, |register| state.register(share, seat, register));
                Ok(())
            }
            COMMAND_BAR => state.load_status(share, offset, data),
            _ => {
                share.window.load(offset, data);
                Ok(())
            }
        });
        if loaded.is_none() {
            data.fill(0xff);
        }
    }

    fn store(&mut self, bar: usize, offset: u64, data: &[u8]) {
        let (seat, end) = (self.common.seat, offset.checked_add(data.len() as u64));
        let Some(end) = end.filter(|&end| end <= self.bar_bytes(bar)) else { return };
        self.try_with(|state, share| match bar {
            REGISTER_BAR => register_stores(offset, data)
                .try_for_each(|(register, value)| state.set_register(share, seat, register, value)),
            COMMAND_BAR => stores(offset, data)
                .try_for_each(|(line, bytes, strobes)| state.traffic.store(share, line, &bytes, strobes)),
            _ => {
                if OF_THE_CARD.iter().all(|area| end <= area.start || area.end <= offset) {
                    share.window.store(offset, data);
                }
                Ok(())
            }
        });
    }

    fn reset(&mut self) -> bool {
        self.try_with(|state, share| state.traffic.forget(share)).is_some()
    }

    fn with_bus(&mut self, act: &mut dyn FnMut(&mut Bus)) {
        act(&mut self.state().traffic.bus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_areas() {
        let areas = [0..100, 200..300];
        assert_eq!(without(&areas, &(50..60)), [0..50, 60..100, 200..300]);
        assert_eq!(without(&areas, &(90..210)), [0..90, 210..300]);
        assert_eq!(without(&areas, &(0..400)), []);
        assert_eq!(without(&areas, &(100..200)), areas);
    }
}
