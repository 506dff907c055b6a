//! What survives a power cut: boot, replay, save.
//!
//! The rules are those of `nearpm_interface::save`; `docs/hardware.md` has the signals. Invariants:
//!
//! - The window opens only after the arm word of this generation is durable.
//! - Nothing is replayed before the checksum of the whole image was found right.
//! - An image counts only for the generation that the arm word names, and each armed generation is
//!   above every generation that stands anywhere in the save area: a stale head can never match.
//! - The head is requested when the memory has answered every other line of the image.
//! - An item is counted in the progress word when nothing is outstanding any more; a counted item
//!   is never executed again. What the counted commands did to the mapping table, which is not in
//!   memory, is done again.
//!
//! At most one access to memory is under way, except during a save, where writes follow each other.

mod kernel;
mod lines;
mod seal;

pub use lines::{Form, SaveFields, SaveLine};
pub use seal::SealOfState;

use crate::bundles::{Lost, MapEntry, MemoryRequester};
use crate::cells::{AsyncRam, Concat, Crc32cBlock, Widen};
use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::geometry::{LINE_U64, MAP_ENTRIES, SAVE_BASE};
use nearpm_interface::registers::state;
use nearpm_interface::save::{ARM_LINE, HEAD_LINE, ITEM_LINE, MAPPING_LINE, MAX_ITEMS, PROGRESS_LINE};
use nearpm_interface::seal::RESIDUE;
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// Where Persistence is. `Read`, `Write` and `Post` return to the phase in `after`.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Phase {
    Reset,
    Read,
    ReadWait,
    ReadDone,
    Write,
    WriteWait,
    Post,
    GotArm,
    GotProgress,
    GotHead,
    Successor,
    BootFirmware,
    Decide,
    Verify,
    VerifyLine,
    VerifyStep,
    VerifyHead,
    VerifyEnd,
    Restore,
    RestoreLine,
    NextItem,
    Scan,
    ScanTail,
    ScanEnd,
    Skip,
    ItemData,
    ItemRecord,
    Inject,
    Settle,
    GateTake,
    ItemDone,
    Arm,
    ArmLine,
    Open,
    Load,
    LoadWait,
    ShutDown,
    CleanDone,
    FunctionReset,
    Loss,
    Missing,
    Drain,
    SaveIndex,
    SaveLook,
    SaveSecond,
    SaveNext,
    SaveWait,
    SaveSeal,
    SaveHead,
    SaveFailed,
    Halt,
    Saved,
}

/// Which table the save reads.
#[derive(Copy, Clone, Debug, PartialEq, LogicState)]
enum Section {
    Mappings,
    Slots,
    Lines,
    Parked,
}

/// Owns the state of the card, replays what the last power cut left, and saves what stands at the
/// next.
///
/// Guarantees: see the module. Bound: from `power_fail` to `save_done` the drain of outstanding
/// bursts, then at most 1100 cycles and the memory's time for 272 single-line writes and one head
/// (the page has the sum).
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Persistence {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high.
    pub reset: Signal<In, Bit>,

    /// Power is about to go: save. Synchronous to the clock; stays high.
    pub power_fail: Signal<In, Bit>,
    /// Everything that has to survive is durable: power may go.
    pub save_done: Signal<Out, Bit>,
    /// One of `registers::state`.
    pub state: Signal<Out, Bits<3>>,
    /// The armed generation.
    pub generation: Signal<Out, Bits<48>>,
    /// Items that this power-up replayed.
    pub replayed: Signal<Out, Bits<32>>,
    /// Cycles of the last save, from `power_fail` to `save_done`.
    pub save_cycles: Signal<Out, Bits<32>>,

    /// Pulse: `control::SHUT_DOWN`.
    pub shut_down: Signal<In, Bit>,
    /// Pulse: `control::ACKNOWLEDGE_LOSS`; only in LOSS and FIRMWARE_MISSING.
    pub acknowledge_loss: Signal<In, Bit>,
    /// Pulse: `control::FUNCTION_RESET`.
    pub function_reset: Signal<In, Bit>,
    /// Pulse: `FIRMWARE_LOAD` was written.
    pub load_request: Signal<In, Bit>,
    /// The slot that was written, with `load_request`.
    pub load_slot: Signal<In, Bits<8>>,
    /// A load was asked for, and the state does not show its outcome yet; from the cycle of the
    /// request on.
    pub load_waits: Signal<Out, Bit>,
    /// The last request to load was refused: NOT_IDLE.
    pub load_refused: Signal<Out, Bit>,

    /// Pulse: the firmware store loads `firmware_slot`.
    pub firmware_load: Signal<Out, Bit>,
    /// The slot to load.
    pub firmware_slot: Signal<Out, Bits<8>>,
    /// The image must have the checksum `firmware_expect`, and the firmware word stands already.
    pub firmware_boot: Signal<Out, Bit>,
    /// Checksum that the image must have at boot.
    pub firmware_expect: Signal<Out, Bits<32>>,
    /// The firmware store is loading, from the cycle after the pulse on.
    pub firmware_busy: Signal<In, Bit>,
    /// An image is in force.
    pub firmware_ok: Signal<In, Bit>,
    /// Checksum of the image in force; 0 if there is none.
    pub firmware_crc: Signal<In, Bits<32>>,

    /// Commands and host accesses are taken; else refused.
    pub window_open: Signal<Out, Bit>,
    /// The ports take no new work; they keep it waiting.
    pub stop: Signal<Out, Bit>,
    /// Nothing is issued and no burst is requested.
    pub quiesce: Signal<Out, Bit>,
    /// Nothing is under way: no burst, numbering, issue, `done` or retirement.
    pub quiet: Signal<In, Bit>,
    /// Every request slot and every host line is empty.
    pub idle: Signal<In, Bit>,
    /// A command failed after it had begun.
    pub failed: Signal<In, Bit>,
    /// Pulse: memory refused a store.
    pub store_failed: Signal<In, Bit>,
    /// Stores that memory refused.
    pub lost: Signal<In, Lost>,
    /// There are some.
    pub lost_any: Signal<In, Bit>,
    /// Pulse: they are acknowledged.
    pub lost_forget: Signal<Out, Bit>,
    /// Lost stores of before the power went, with `restore_valid`.
    pub restore_lost: Signal<Out, Lost>,
    /// Some mapping entry is latched.
    pub latched_any: Signal<In, Bit>,
    /// Pulse: forget mappings, failed commands with what they hold, and completion rings.
    pub clear: Signal<Out, Bit>,
    /// Order number of the last item.
    pub order: Signal<In, Bits<64>>,
    /// Some command waits for other devices.
    pub parked_any: Signal<In, Bit>,
    /// Number of this device.
    pub device_number: Signal<In, Bits<4>>,
    /// Pulse: a replay begins, with what its head says of order and device.
    pub restore_valid: Signal<Out, Bit>,
    /// Order number of the last item before the power went.
    pub restore_order: Signal<Out, Bits<64>>,
    /// Number of this device before the power went.
    pub restore_device: Signal<Out, Bits<4>>,

    /// Entry to read out; the tables answer in the next cycle.
    pub save_index: Signal<Out, Bits<7>>,
    /// The mapping entry.
    pub saved_map: Signal<In, MapEntry>,
    /// The request slot holds a live command.
    pub saved_slot_valid: Signal<In, Bit>,
    /// The command.
    pub saved_slot_command: Signal<In, Bits<512>>,
    /// Order number under which it was accepted.
    pub saved_slot_order: Signal<In, Bits<64>>,
    /// Its page.
    pub saved_slot_page: Signal<In, Bits<2>>,
    /// Instruction at which it resumes.
    pub saved_slot_resume: Signal<In, Bits<8>>,
    /// It has waited for other devices.
    pub saved_slot_released: Signal<In, Bit>,
    /// The place holds a command that waits for other devices.
    pub saved_parked_valid: Signal<In, Bit>,
    /// The command.
    pub saved_parked_command: Signal<In, Bits<512>>,
    /// Order number under which it was accepted.
    pub saved_parked_order: Signal<In, Bits<64>>,
    /// Its page.
    pub saved_parked_page: Signal<In, Bits<2>>,
    /// The host line holds a write.
    pub saved_line_valid: Signal<In, Bit>,
    /// Its data.
    pub saved_line_data: Signal<In, Bits<512>>,
    /// Its line address.
    pub saved_line_line: Signal<In, Bits<34>>,
    /// Its strobes.
    pub saved_line_strobes: Signal<In, Bits<64>>,
    /// Its order number.
    pub saved_line_order: Signal<In, Bits<64>>,

    /// Write an entry of the mapping table at the next edge.
    pub map_restore_valid: Signal<Out, Bit>,
    /// Which entry.
    pub map_restore_index: Signal<Out, Bits<4>>,
    /// Its contents.
    pub map_restore: Signal<Out, MapEntry>,
    /// A command to number.
    pub inject_command_valid: Signal<Out, Bit>,
    /// The command has been numbered or refused.
    pub inject_command_ready: Signal<In, Bit>,
    /// The command as it was posted.
    pub inject_command: Signal<Out, Bits<512>>,
    /// The page that it came from.
    pub inject_page: Signal<Out, Bits<2>>,
    /// Instruction at which it resumes; 0 starts it from its entry.
    pub inject_resume: Signal<Out, Bits<8>>,
    /// It waits for no device any more.
    pub inject_released: Signal<Out, Bit>,
    /// It waited for other devices when the power went, and does so again.
    pub inject_parks: Signal<Out, Bit>,
    /// Order number under which it was accepted.
    pub inject_accepted: Signal<Out, Bits<64>>,
    /// Its effects in memory are durable: it is not executed, but does again what it did to the
    /// mapping table.
    pub redo: Signal<Out, Bit>,
    /// A host write to number.
    pub inject_store_valid: Signal<Out, Bit>,
    /// The write has been numbered.
    pub inject_store_ready: Signal<In, Bit>,
    /// Its line address.
    pub inject_store_line: Signal<Out, Bits<34>>,
    /// Its data.
    pub inject_store_data: Signal<Out, Bits<512>>,
    /// Its strobes.
    pub inject_store_strobes: Signal<Out, Bits<64>>,

    /// A unit offers progress.
    pub gate_valid: Signal<In, Bit>,
    /// Instruction at which the command would resume.
    pub gate_pc: Signal<In, Bits<8>>,
    /// The progress may be taken.
    pub gate_ready: Signal<Out, Bit>,

    /// The save area.
    pub mem: MemoryRequester,

    phase: DFF<Phase>,
    after: DFF<Phase>,
    section: DFF<Section>,
    /// What is made in this cycle, decided in the one before.
    form: DFF<Form>,
    public_state: DFF<Bits<3>>,
    open: DFF<Bit>,
    stopped: DFF<Bit>,
    clearing: DFF<Bit>,
    quiesced: DFF<Bit>,
    gating: DFF<Bit>,
    saving: DFF<Bit>,
    saved: DFF<Bit>,
    clean: DFF<Bit>,
    shut_pending: DFF<Bit>,
    reset_pending: DFF<Bit>,
    load_pending: DFF<Bit>,
    loaded: DFF<Bit>,
    refused: DFF<Bit>,
    failure: DFF<Bit>,

    /// The line that was read, or that is written.
    line: DFF<Bits<512>>,
    line_error: DFF<Bit>,
    /// The head while its image is verified; then the first line of the item that is replayed.
    held: DFF<Bits<512>>,
    /// Line of the save area that is accessed.
    target: DFF<Bits<9>>,
    /// Write only the lowest 8 bytes (else the whole line).
    word_only: DFF<Bit>,
    /// The request, or the data, of the write under way is taken.
    address_done: DFF<Bit>,
    unanswered: DFF<Bits<9>>,
    posted: DFF<Bit>,
    answered: DFF<Bit>,
    write_error: DFF<Bit>,
    /// `line` enters the checksum in this cycle.
    feed: DFF<Bit>,
    feed_first: DFF<Bit>,

    armed: DFF<Bits<48>>,
    successor: DFF<Bits<48>>,
    arm_running: DFF<Bit>,
    arm_fresh: DFF<Bit>,
    boot_slot: DFF<Bits<8>>,
    boot_crc: DFF<Bits<32>>,
    boot_tagged: DFF<Bit>,
    loading_boot: DFF<Bit>,
    head_ok: DFF<Bit>,
    /// The image says that stores were lost before the power went.
    head_lost: DFF<Bit>,
    /// What the line says, one cycle after it was read.
    progress_now: DFF<Bit>,
    head_now: DFF<Bit>,
    head_above: DFF<Bit>,
    head_crc: DFF<Bits<32>>,
    head_firmware: DFF<Bits<32>>,
    items: DFF<Bits<16>>,
    skip: DFF<Bits<16>>,
    resume: DFF<Bits<8>>,
    item_resume: DFF<Bits<8>>,
    done: DFF<Bits<16>>,
    all_done: DFF<Bit>,
    skipping: DFF<Bit>,
    last_item: DFF<Bits<16>>,
    second: DFF<Bit>,
    index: DFF<Bits<7>>,
    pause: DFF<Bits<3>>,
    run: DFF<Bits<9>>,
    /// A waiting phase was entered before this cycle; `run` counts its calm cycles.
    counting: DFF<Bit>,
    calm: DFF<Bit>,
    cycles: DFF<Bits<32>>,
    replayed_count: DFF<Bits<32>>,

    /// Order numbers of the image's items.
    orders: AsyncRam<Bits<64>, 7, 1>,
    candidate: DFF<Bits<64>>,
    candidate_index: DFF<Bits<7>>,
    candidate_valid: DFF<Bit>,
    best: DFF<Bits<64>>,
    best_index: DFF<Bits<7>>,
    found: DFF<Bit>,
    floor: DFF<Bits<64>>,

    fields: SaveFields,
    lines: SaveLine,
    crc: Crc32cBlock,
    seal: SealOfState,
    place: Concat<25, 9, 34>,
    wide_best: Widen<7, 8>,
    twice: Concat<8, 1, 9>,
    replays: Signal<Local, Bit>,

    #[default(Constant::new(0.into()))]
    zero1: Constant<Bits<1>>,
    #[default(Constant::new(0.into()))]
    zero3: Constant<Bits<3>>,
    #[default(Constant::new(0.into()))]
    zero48: Constant<Bits<48>>,
    #[default(Constant::new(0.into()))]
    zero64: Constant<Bits<64>>,
    #[default(Constant::new(1.into()))]
    one7: Constant<Bits<7>>,
    #[default(Constant::new(1.into()))]
    one9: Constant<Bits<9>>,
    #[default(Constant::new(1.into()))]
    one3: Constant<Bits<3>>,
    #[default(Constant::new(1.into()))]
    one16: Constant<Bits<16>>,
    #[default(Constant::new(1.into()))]
    one32: Constant<Bits<32>>,
    #[default(Constant::new(0.into()))]
    zero32: Constant<Bits<32>>,
    #[default(Constant::new(1.into()))]
    one48: Constant<Bits<48>>,
    #[default(Constant::new(((SAVE_BASE / LINE_U64) >> 9).into()))]
    base: Constant<Bits<25>>,
    #[default(Constant::new(Bits::<64>::mask()))]
    all_strobes: Constant<Bits<64>>,
    #[default(Constant::new(0xff.into()))]
    word_strobes: Constant<Bits<64>>,
    #[default(Constant::new(u64::from(RESIDUE).into()))]
    residue: Constant<Bits<32>>,
    #[default(Constant::new((MAX_ITEMS as u64).into()))]
    max_items: Constant<Bits<16>>,
    #[default(Constant::new((MAP_ENTRIES as u64 - 1).into()))]
    last_map: Constant<Bits<7>>,
    #[default(Constant::new((Sizes::FULL.slots as u64 - 1).into()))]
    last_slot: Constant<Bits<7>>,
    #[default(Constant::new((Sizes::FULL.lines as u64 - 1).into()))]
    last_line: Constant<Bits<7>>,
    #[default(Constant::new((Sizes::FULL.parked_commands as u64 - 1).into()))]
    last_place: Constant<Bits<7>>,
    #[default(Constant::new(5.into()))]
    crc_latency: Constant<Bits<3>>,
    #[default(Constant::new((ARM_LINE as u64).into()))]
    arm_line: Constant<Bits<9>>,
    #[default(Constant::new((PROGRESS_LINE as u64).into()))]
    progress_line: Constant<Bits<9>>,
    #[default(Constant::new((HEAD_LINE as u64).into()))]
    head_line: Constant<Bits<9>>,
    #[default(Constant::new((MAPPING_LINE as u64).into()))]
    mapping_line: Constant<Bits<9>>,
    #[default(Constant::new((ITEM_LINE as u64).into()))]
    item_line: Constant<Bits<9>>,
    #[default(Constant::new(u64::from(state::BOOTING).into()))]
    is_booting: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::REPLAYING).into()))]
    is_replaying: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::OPEN).into()))]
    is_open: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::LOSS).into()))]
    is_loss: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::NO_FIRMWARE).into()))]
    is_no_firmware: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::FIRMWARE_MISSING).into()))]
    is_missing: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::SAVING).into()))]
    is_saving: Constant<Bits<3>>,
    #[default(Constant::new(u64::from(state::SAVED).into()))]
    is_saved: Constant<Bits<3>>,
}

const _: () = assert!((SAVE_BASE / LINE_U64).is_multiple_of(512), "the save area starts at a multiple of 512 lines");

impl Persistence {
    /// Saves as many slots, lines and places. The mappings of a save are those of the full card:
    /// entries that are not there are not in use.
    pub fn new(sizes: &Sizes) -> Self {
        Self {
            last_slot: Constant::new((sizes.slots as u64 - 1).into()),
            last_line: Constant::new((sizes.lines as u64 - 1).into()),
            last_place: Constant::new((sizes.parked_commands as u64 - 1).into()),
            ..Self::default()
        }
    }
}
