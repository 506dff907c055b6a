//! A card that was opened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use nearpm_interface::INTERFACE_VERSION;
use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::firmware::IMAGE_BYTES;
use nearpm_interface::geometry::{
    COMMAND_PAGES, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, PCI_DEVICE, PCI_VENDOR, PM_BAR,
};
use nearpm_interface::registers::{self as reg, firmware_status};

use crate::error::{CardError, CommandFailure, FirmwareError};
use crate::options::{CardOptions, Waiting};
use crate::page::{self, CommandPage, Latched, SharedRead, Ticket};
use crate::pci::{Caching, Mapping, PciError, PciFunction};
use crate::registers::{Capabilities, Control, LostStores, Registers, State};

pub mod parked;
pub mod sharing;

use parked::Number;
use sharing::Sharing;

/// Configuration space: vendor and device (PCI Express base specification, 7.5.1.1).
const CONFIG_IDENTITY: u16 = 0x00;
/// Configuration space: command register.
const CONFIG_COMMAND: u16 = 0x04;
/// Bits of the command register: memory accesses.
const MEMORY: u16 = 0x0002;
/// Command register: memory space and bus master enable.
const MEMORY_AND_BUS_MASTER: u16 = 0x0006;
/// Reads of a page's status line that are under way at the same time, at most. A thread that waits
/// for another's read to end and then for the next one waits for two, half a round trip more on
/// average: sharing pays where so many are under way that they stand in each other's way.
const READS_AT_ONCE: u32 = 8;
/// Nanoseconds between two looks at a register.
const POLL_NS: u64 = 1000;

/// Where the pool of a (pool, thread) lies on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolMapping {
    /// Pool identifier.
    pub pool: u32,
    /// Thread.
    pub thread: u16,
    /// Device address of the pool, a multiple of 64.
    pub base: u64,
    /// Bytes of the pool.
    pub bytes: u64,
    /// Offset of the log ring in the pool, a multiple of 64.
    pub ring: u64,
    /// Bytes of the log ring.
    pub ring_bytes: u32,
    /// Last transaction identifier that was used: logs at or below it are refused.
    pub committed: u64,
}

/// An open card: its state is [`State::Open`], its version is this driver's, and nothing was in
/// flight when it was opened.
pub struct Card {
    function: Arc<dyn PciFunction>,
    registers: Registers,
    capabilities: Capabilities,
    pm_bytes: u64,
    pages: Vec<Mutex<CommandPage>>,
    /// A window on each, for who reads a status line while another thread has the page.
    windows: Vec<Arc<dyn Mapping>>,
    /// Reads of each page's status line through it.
    reads: Vec<SharedRead<PageStatus>>,
    failed_logs: Mutex<FailedLogs>,
    pub(crate) number: Number,
    pub(crate) sharing: Option<Sharing>,
    timeout_ns: u64,
    waiting: Waiting,
}

/// What is known of failed logs.
#[derive(Default)]
struct FailedLogs {
    /// Latched entries whose failures are all among the known.
    explained: u16,
    known: Vec<CommandFailure>,
    /// Where the pool of each mapped (pool, thread) lies.
    mapped: BTreeMap<(u32, u16), Range<u64>>,
    /// Lost stores, when the registers were read last.
    lost: Option<LostStores>,
}

impl std::fmt::Debug for Card {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Card").field("capabilities", &self.capabilities).field("pm_bytes", &self.pm_bytes).finish()
    }
}

impl Card {
    /// Opens a card: checks who it is, waits for its boot and replay, resets the function (which
    /// drains and forgets mappings), loads firmware where there is none, and opens the command
    /// pages.
    ///
    /// # Errors
    /// [`CardError::Loss`] after a torn power-fail save: nothing is changed until
    /// [`Card::acknowledge_loss`].
    /// [`CardError::StoresLost`] where memory has refused stores: the function was reset, and the
    /// pools are as they were; it goes on until [`Card::acknowledge_loss`] as well.
    pub fn open(function: Arc<dyn PciFunction>, options: CardOptions) -> Result<Card, CardError> {
        check_identity(&*function)?;
        // The rings may be those of somebody who has gone: nothing is written to host memory before
        // the reset.
        enable(&*function, MEMORY)?;
        let registers = Registers::map(&*function)?;
        check_version(&registers)?;
        match settled_state(&*function, &registers, options.timeout_ns)? {
            State::Loss => return Err(CardError::Loss),
            State::FirmwareMissing => return Err(CardError::FirmwareMissing),
            _ => {}
        }
        match function.reset() {
            Err(PciError::Unsupported { .. }) => {}
            other => other?,
        }
        // A function without a function-level reset of its own is reset by its bus or its power
        // state, if at all, and the card behind it not: the register resets that. Until it has, the
        // rings may still be the other's.
        enable(&*function, MEMORY)?;
        registers.control(Control::FUNCTION_RESET);
        let state = settled_state(&*function, &registers, options.timeout_ns)?;
        enable(&*function, MEMORY_AND_BUS_MASTER)?;
        match state {
            State::Open => {}
            State::NoFirmware => {
                let image = options.firmware.as_deref().ok_or(CardError::NoFirmware)?;
                load_firmware(&*function, &registers, image, options.timeout_ns)?;
            }
            State::Loss => return Err(CardError::Loss),
            State::FirmwareMissing => return Err(CardError::FirmwareMissing),
            _ => return Err(CardError::ShutDown { state: registers.read(reg::STATE) }),
        }
        let capabilities = registers.capabilities();
        let records = capabilities.contains(Capabilities::COMPLETION_RECORDS);
        let pages = (0..COMMAND_PAGES)
            .map(|n| CommandPage::open(&*function, &registers, n, records, &options))
            .collect::<Result<Vec<_>, _>>()?;
        // Who had the card before may have ended before it heard of them. The status lines were
        // read anyway.
        if pages.iter().any(CommandPage::began_with_lost_stores)
            && let Some(lost) = registers.lost_stores()
        {
            return Err(CardError::StoresLost(lost));
        }
        let windows = pages.iter().map(CommandPage::window).collect();
        let reads = pages.iter().map(|_| SharedRead::new(READS_AT_ONCE)).collect();
        let pages = pages.into_iter().map(Mutex::new).collect();
        let pm_bytes = registers.pm_bytes();
        let failed_logs = Mutex::default();
        let (number, waiting, timeout_ns, sharing) =
            (Number::default(), options.waiting, options.timeout_ns, Sharing::find(capabilities, &registers));
        Ok(Card {
            function,
            registers,
            capabilities,
            pm_bytes,
            pages,
            windows,
            reads,
            failed_logs,
            number,
            sharing,
            timeout_ns,
            waiting,
        })
    }

    /// Accepts that the last power-fail save was lost, or stores that memory refused, so that the
    /// card opens. Pools must be checked by their owners: what was accepted and not yet written is
    /// gone.
    pub fn acknowledge_loss(function: &dyn PciFunction) -> Result<(), CardError> {
        check_identity(function)?;
        enable(function, MEMORY)?;
        let registers = Registers::map(function)?;
        check_version(&registers)?;
        registers.control(Control::ACKNOWLEDGE_LOSS);
        Ok(())
    }

    /// What the card can do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How completions are waited for.
    pub fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// Bytes of persistent memory.
    pub fn pm_bytes(&self) -> u64 {
        self.pm_bytes
    }

    /// The register block, for counters.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// The function below.
    pub fn function(&self) -> &dyn PciFunction {
        &*self.function
    }

    /// A window on persistent memory; `range` are device addresses.
    pub fn window(&self, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, CardError> {
        if range.end > self.pm_bytes {
            return Err(CardError::BeyondCard { what: "address", value: range.end, limit: self.pm_bytes });
        }
        Ok(self.function.map(PM_BAR, range, caching)?)
    }

    /// Posts a command on a page; see [`CommandPage::post`].
    pub fn post(&self, page: usize, command: Command, notify: bool) -> Result<Ticket, CardError> {
        self.page(page)?.post(&*self.function, command, notify)
    }

    /// Posts commands on a page under one fence; see [`CommandPage::post_all`].
    pub fn post_all(&self, page: usize, commands: &[Command], notify: bool) -> Result<Option<Ticket>, CardError> {
        self.page(page)?.post_all(&*self.function, commands, notify)
    }

    /// Posts commands on a page and leaves the fence to the caller; see
    /// [`CommandPage::post_unfenced`].
    pub fn post_unfenced(&self, page: usize, commands: &[Command]) -> Result<(), CardError> {
        self.page(page)?.post_unfenced(&*self.function, commands, false).map(drop)
    }

    /// Waits until a command has retired; see [`CommandPage::wait`].
    pub fn wait(&self, ticket: Ticket) -> Result<(), CardError> {
        self.page(ticket.page)?.wait(&*self.function, ticket)
    }

    /// Waits until a command is durable: accepted by the persistence domain, or already done.
    /// Whether a log has failed that it depends on is for [`Card::verify_logs`] to say.
    pub fn read_back(&self, ticket: Ticket) -> Result<Latched, CardError> {
        let (page, status) = (|| self.page(ticket.page), || self.page_status(ticket.page));
        page::read_back(&*self.function, ticket, page, status)
    }

    /// Waits until everything that was stored or posted before, and fenced, is in the card's
    /// persistence domain, host stores included, whichever thread it was that did. Threads that
    /// wait at the same time share the read. Gives what the status line says of failed logs.
    pub fn push(&self, page: usize) -> Result<Latched, CardError> {
        Ok((&self.page_status(page)?).into())
    }

    /// Makes sure that memory had refused no store to a range of device addresses when the status
    /// line was read that gave `latched`. Costs nothing where it shows no lost store.
    ///
    /// # Errors
    /// [`CardError::StoresLost`], also where only the range between two lost lines is among these
    /// addresses: the card names the first and the last.
    pub fn verify_stores(&self, place: &Range<u64>, latched: Latched) -> Result<(), CardError> {
        match self.lost_stores(latched).filter(|lost| lost.within(place).is_some()) {
            Some(lost) => Err(CardError::StoresLost(lost)),
            None => Ok(()),
        }
    }

    /// What is known of lost stores, where a status line tells of any. The registers are read once
    /// for each number of them.
    fn lost_stores(&self, latched: Latched) -> Option<LostStores> {
        if latched.stores_lost == 0 {
            return None;
        }
        let mut logs = self.lock(&self.failed_logs);
        if logs.lost.is_none_or(|lost| lost.count != latched.stores_lost) {
            logs.lost = self.registers.lost_stores();
        }
        logs.lost
    }

    /// Makes sure that no log of a pool had failed when the status line was read that gave
    /// `latched`. Costs nothing where it shows no failed log; else, once for each, it waits until
    /// every command that was posted has ended.
    ///
    /// # Errors
    /// [`CardError::LogFailed`] where one has: stores that the card had accepted may have been
    /// dropped.
    pub fn verify_logs(&self, pool: u32, latched: Latched) -> Result<(), CardError> {
        if latched.entries == 0 {
            return Ok(());
        }
        let lost = self.lost_stores(latched);
        let mut logs = self.lock(&self.failed_logs);
        if latched.entries & !logs.explained != 0 {
            for page in 0..COMMAND_PAGES {
                let mut page = self.page(page)?;
                page.drain(&*self.function)?;
                logs.known.extend(page.take_log_failures());
            }
            logs.explained |= latched.entries;
        }
        let of_pool = || logs.known.iter().filter(|failure| failure.command.pool == pool);
        let log = of_pool().find(|failure| failure.is_failed_log()).or_else(|| of_pool().next()).copied();
        // Without completion records of several failures only the last is known by name: anybody's
        // log may have failed.
        let mut named: BTreeSet<_> = logs.known.iter().map(|f| (f.command.pool, f.command.thread)).collect();
        // A lost store latches, too.
        // What lies between two lost lines need not have lost one: of those somebody's log may have
        // failed.
        let struck =
            |place: &Range<u64>| lost.is_some_and(|lost| place.contains(&lost.first) || place.contains(&lost.last));
        named.extend(logs.mapped.iter().filter(|(_, place)| struck(place)).map(|(key, _)| *key));
        if log.is_some() || named.len() < latched.entries.count_ones() as usize {
            return Err(CardError::LogFailed { pool, log, lost: self.registers.read(reg::HOST_LATCHED) });
        }
        Ok(())
    }

    /// The status line of a page, whoever is at work on it, as it is after this call began. It is
    /// answered when everything that was posted before, and fenced, is accepted. Threads that ask
    /// at the same time share the read.
    ///
    /// # Errors
    /// [`CardError::Gone`], or if there is no such page.
    pub fn page_status(&self, page: usize) -> Result<PageStatus, CardError> {
        let window = self.windows.get(page).ok_or_else(|| no_page(page))?;
        self.reads[page].read(|| self.function.contended(), || page::status(&**window))
    }

    /// Waits until every command of a page has ended; see [`CommandPage::drain`].
    pub fn drain(&self, page: usize) -> Result<(), CardError> {
        self.page(page)?.drain(&*self.function)
    }

    /// Takes a failure of (pool, thread) on a page that nobody has been told of.
    pub fn take_failure(&self, page: usize, pool: u32, thread: u16) -> Result<Option<CommandFailure>, CardError> {
        Ok(self.page(page)?.take_failure(pool, thread))
    }

    /// Whether a command of (pool, thread) on a page has failed since its mapping was made, also
    /// where somebody has been told of it.
    pub fn has_failed(&self, page: usize, pool: u32, thread: u16) -> Result<bool, CardError> {
        Ok(self.page(page)?.has_failed(pool, thread))
    }

    /// Maps a (pool, thread), and waits until it is.
    ///
    /// # Errors
    /// [`crate::CommandError::MapFull`] when the card's table is full: use another thread's
    /// mapping, or the CPU.
    pub fn map_pool(&self, mapping: PoolMapping) -> Result<(), CardError> {
        let ticket = self.post(
            PRIVILEGED_PAGE,
            Command {
                opcode: Opcode::Map as u8,
                pool: mapping.pool,
                thread: mapping.thread,
                source: mapping.base,
                destination: mapping.bytes,
                auxiliary: mapping.ring,
                length: mapping.ring_bytes,
                sequence: mapping.committed,
                ..Command::default()
            },
            true,
        )?;
        self.wait(ticket)?;
        let place = mapping.base..mapping.base.saturating_add(mapping.bytes);
        self.lock(&self.failed_logs).mapped.insert((mapping.pool, mapping.thread), place);
        Ok(())
    }

    /// Removes the mapping of a (pool, thread) after all its commands, and waits until it is gone.
    pub fn unmap_pool(&self, pool: u32, thread: u16) -> Result<(), CardError> {
        let command = Command { opcode: Opcode::Unmap as u8, pool, thread, ..Command::default() };
        let ticket = self.post(PRIVILEGED_PAGE, command, true)?;
        self.wait(ticket)?;
        let mut logs = self.lock(&self.failed_logs);
        for page in 0..COMMAND_PAGES {
            self.page(page)?.forget_failures(pool, thread);
        }
        logs.known.retain(|failure| (failure.command.pool, failure.command.thread) != (pool, thread));
        logs.mapped.remove(&(pool, thread));
        // Which entry it had is not known.
        logs.explained = 0;
        Ok(())
    }

    /// Loads a firmware image into the free slot and puts it in force. Waits until the card is
    /// idle, which it never is while commands are posted.
    ///
    /// # Errors
    /// [`FirmwareError::NotIdle`] when it was not idle within [`CardOptions::timeout_ns`]: the
    /// firmware in force is the one of before.
    /// [`FirmwareError::Shared`] on a card that several processes share.
    pub fn load_firmware(&self, image: &[u8]) -> Result<(), CardError> {
        if self.sharing.is_some() {
            return Err(FirmwareError::Shared.into());
        }
        load_firmware(&*self.function, &self.registers, image, self.timeout_ns)
    }

    /// Finishes everything accepted and marks the persistence domain clean. The card takes no
    /// work afterwards, until power-up.
    ///
    /// # Errors
    /// [`CardError::Shared`] on a card that several processes share.
    pub fn shut_down(&self) -> Result<(), CardError> {
        if self.sharing.is_some() {
            return Err(CardError::Shared { what: "shut it down" });
        }
        self.registers.control(Control::SHUT_DOWN);
        let start = self.function.now_ns();
        while self.registers.state()? != State::Saved {
            pause(&*self.function, start, self.timeout_ns, "shut down")?;
        }
        Ok(())
    }

    /// Every page, drained, with nobody else at work on any.
    pub(crate) fn drained_pages(&self) -> Result<Vec<MutexGuard<'_, CommandPage>>, CardError> {
        let mut pages = (0..COMMAND_PAGES).map(|page| self.page(page)).collect::<Result<Vec<_>, _>>()?;
        pages.iter_mut().try_for_each(|page| page.drain(&*self.function))?;
        Ok(pages)
    }

    /// Lets some time pass while `what` has not happened.
    pub(crate) fn pause(&self, start: u64, what: &'static str) -> Result<(), CardError> {
        pause(&*self.function, start, self.timeout_ns, what)
    }

    pub(crate) fn page(&self, page: usize) -> Result<MutexGuard<'_, CommandPage>, CardError> {
        Ok(self.lock(self.pages.get(page).ok_or_else(|| no_page(page))?))
    }

    /// Locks what threads share. Pages and lists of failures are consistent between any two of
    /// their calls, so that a panic elsewhere does not spoil them.
    fn lock<'c, T>(&self, mutex: &'c Mutex<T>) -> MutexGuard<'c, T> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if self.function.contended() => {}
                Err(TryLockError::WouldBlock) => return mutex.lock().unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

fn no_page(page: usize) -> CardError {
    CardError::BeyondCard { what: "command page", value: page as u64, limit: COMMAND_PAGES as u64 - 1 }
}

/// The page that alone maps and unmaps pools.
pub const PRIVILEGED_PAGE: usize = 0;

fn check_identity(function: &dyn PciFunction) -> Result<(), CardError> {
    let mut id = [0; 4];
    function.config_read(CONFIG_IDENTITY, &mut id)?;
    let vendor = u16::from_le_bytes([id[0], id[1]]);
    let device = u16::from_le_bytes([id[2], id[3]]);
    match (vendor, device) {
        (PCI_VENDOR, PCI_DEVICE) => Ok(()),
        (u16::MAX, u16::MAX) => Err(CardError::Gone),
        _ => Err(CardError::NotACard { vendor, device }),
    }
}

/// Lets the function answer memory accesses, or master the bus as well. A reset clears both.
fn enable(function: &dyn PciFunction, bits: u16) -> Result<(), CardError> {
    let mut command = [0; 2];
    function.config_read(CONFIG_COMMAND, &mut command)?;
    let command = u16::from_le_bytes(command) & !MEMORY_AND_BUS_MASTER | bits;
    Ok(function.config_write(CONFIG_COMMAND, &command.to_le_bytes())?)
}

fn check_version(registers: &Registers) -> Result<(), CardError> {
    match registers.read(reg::ID) {
        reg::ID_VALUE => {}
        u32::MAX => return Err(CardError::Gone),
        found => return Err(CardError::BadIdentity { found }),
    }
    match registers.read(reg::VERSION) {
        INTERFACE_VERSION => Ok(()),
        found => Err(CardError::WrongVersion { found, supported: INTERFACE_VERSION }),
    }
}

/// The state, once boot and replay are over.
fn settled_state(function: &dyn PciFunction, registers: &Registers, timeout_ns: u64) -> Result<State, CardError> {
    let start = function.now_ns();
    loop {
        match registers.state()? {
            State::Booting | State::Replaying => pause(function, start, timeout_ns, "finish its boot or reset")?,
            State::Saving | State::Saved | State::Unknown(_) => {
                return Err(CardError::ShutDown { state: registers.read(reg::STATE) });
            }
            state => return Ok(state),
        }
    }
}

fn load_firmware(
    function: &dyn PciFunction,
    registers: &Registers,
    image: &[u8],
    timeout_ns: u64,
) -> Result<(), CardError> {
    if image.len() != IMAGE_BYTES {
        return Err(FirmwareError::BadSize { expected: IMAGE_BYTES, found: image.len() }.into());
    }
    // The slot in force refuses writes. Where none is in force any slot will do.
    let slot = (registers.firmware_slot() + 1) % FIRMWARE_SLOTS;
    let start = FIRMWARE_BASE + slot as u64 * FIRMWARE_SLOT_BYTES;
    let window = function.map(PM_BAR, start..start + FIRMWARE_SLOT_BYTES, Caching::Uncached)?;
    window.store(0, image);
    window.fence();
    // The register path may overtake posted writes inside the card: a load behind them does not.
    let mut check = vec![0; image.len()];
    window.load(0, &mut check);
    if check != image {
        return Err(FirmwareError::MemoryError.into());
    }
    let start = function.now_ns();
    registers.write(reg::FIRMWARE_LOAD, slot as u32);
    loop {
        let error = match registers.read(reg::FIRMWARE_STATUS) {
            u32::MAX => return Err(CardError::Gone),
            status => match status & 0xff {
                firmware_status::OK => break,
                firmware_status::NONE | firmware_status::BUSY => {
                    pause(function, start, timeout_ns, "load firmware")?;
                    continue;
                }
                firmware_status::BAD_MAGIC => FirmwareError::BadMagic,
                firmware_status::BAD_VERSION => FirmwareError::BadVersion,
                firmware_status::BAD_CRC => FirmwareError::BadCrc,
                // A load that the processor makes ahead of time is enough, so that the card is
                // asked again.
                firmware_status::NOT_IDLE => match pause(function, start, timeout_ns, "become idle") {
                    Ok(()) => {
                        registers.write(reg::FIRMWARE_LOAD, slot as u32);
                        continue;
                    }
                    Err(CardError::Timeout { waited_ns, .. }) => FirmwareError::NotIdle { waited_ns },
                    Err(other) => return Err(other),
                },
                firmware_status::MEMORY_ERROR => FirmwareError::MemoryError,
                other => FirmwareError::Unknown(other),
            },
        };
        return Err(error.into());
    }
    while registers.state()? != State::Open {
        pause(function, start, timeout_ns, "open after loading firmware")?;
    }
    Ok(())
}

fn pause(function: &dyn PciFunction, start: u64, timeout_ns: u64, what: &'static str) -> Result<(), CardError> {
    let waited_ns = function.now_ns().saturating_sub(start);
    if waited_ns > timeout_ns {
        return Err(CardError::Timeout { what, waited_ns });
    }
    function.relax(POLL_NS);
    Ok(())
}
