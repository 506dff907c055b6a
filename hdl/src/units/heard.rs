//! How far other devices have come.

use crate::dut::Ports;
use crate::sizes::Sizes;
use nearpm_interface::geometry::{MAP_ENTRIES, MAX_DEVICES};
use rust_hdl::prelude::*;
use smart_default::SmartDefault;

/// The last transaction that each device has told of, by mapping entry: 128 words in the full card.
///
/// Guarantees: `behind` and `shown` answer in the next cycle, with what stood before its edge. An
/// entry that is forgotten has heard nothing. A word is replaced by what is told, whatever it is:
/// who tells looks at `behind` before.
#[derive(SmartDefault, LogicBlock, Ports)]
pub struct Heard {
    /// Rising edge.
    pub clock: Signal<In, Clock>,
    /// Synchronous, high: nothing was heard.
    pub reset: Signal<In, Bit>,
    /// A device tells.
    pub tell_valid: Signal<In, Bit>,
    /// Of which mapping entry.
    pub tell_map: Signal<In, Bits<4>>,
    /// Its number.
    pub tell_device: Signal<In, Bits<3>>,
    /// Its transaction.
    pub tell_txid: Signal<In, Bits<64>>,
    /// A mapping entry is written: forget what was heard of it.
    pub forget_valid: Signal<In, Bit>,
    /// The entry.
    pub forget_map: Signal<In, Bits<4>>,
    /// A mapping entry.
    pub look_map: Signal<In, Bits<4>>,
    /// A transaction.
    pub look_txid: Signal<In, Bits<64>>,
    /// Devices that have not come as far, a bit each.
    pub behind: Signal<Out, Bits<8>>,
    /// Another mapping entry.
    pub show_map: Signal<In, Bits<4>>,
    /// Another transaction.
    pub show_txid: Signal<In, Bits<64>>,
    /// Devices that have not come as far, a bit each.
    pub shown: Signal<Out, Bits<8>>,

    /// What was heard; `None` where nothing was.
    #[default(vec![[None; MAX_DEVICES]; Sizes::FULL.map_entries])]
    _words: Vec<[Option<u64>; MAX_DEVICES]>,
}

impl Heard {
    /// For as many mapping entries.
    pub fn new(sizes: &Sizes) -> Self {
        const { assert!(MAX_DEVICES == 8 && MAP_ENTRIES == 16, "widths of the ports") };
        Self { _words: vec![[None; MAX_DEVICES]; sizes.map_entries], ..Self::default() }
    }

    /// Devices that have not come as far with an entry.
    fn behind(&self, map: usize, txid: u64) -> u64 {
        let words = self._words[map].iter().enumerate();
        words.fold(0, |mask, (device, word)| mask | u64::from(word.unwrap_or(0) < txid) << device)
    }
}

impl Logic for Heard {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            self.behind.next = self.behind(self.look_map.val().index(), self.look_txid.val().to_u64()).into();
            self.shown.next = self.behind(self.show_map.val().index(), self.show_txid.val().to_u64()).into();
            if self.tell_valid.val() {
                let word = &mut self._words[self.tell_map.val().index()][self.tell_device.val().index()];
                *word = Some(self.tell_txid.val().to_u64());
            }
            if self.forget_valid.val() {
                self._words[self.forget_map.val().index()] = [None; MAX_DEVICES];
            }
            if self.reset.val() {
                self._words.fill([None; MAX_DEVICES]);
            }
        }
    }

    fn connect(&mut self) {
        self.behind.connect();
        self.shown.connect();
    }

    fn hdl(&self) -> Verilog {
        let last = self._words.len() - 1;
        let mut code = String::from("initial begin behind = 8'd0; shown = 8'd0; end\n");
        for d in 0..MAX_DEVICES {
            code += &format!(
                "(* ram_style = \"distributed\" *) reg [63:0] words_{d} [0:{last}];\n\
                 reg [{last}:0] valid_{d};\n\
                 integer start_{d};\n\
                 initial begin valid_{d} = 0; for (start_{d} = 0; start_{d} <= {last}; start_{d} = start_{d} + 1) words_{d}[start_{d}] = 64'd0; end\n\
                 wire [63:0] looked_{d} = valid_{d}[look_map] ? words_{d}[look_map] : 64'd0;\n\
                 wire [63:0] seen_{d} = valid_{d}[show_map] ? words_{d}[show_map] : 64'd0;\n\
                 wire [{last}:0] told_{d} = (tell_valid & (tell_device == 3'd{d})) ? {maps}'d1 << tell_map : {maps}'d0;\n\
                 wire [{last}:0] forgot_{d} = forget_valid ? {maps}'d1 << forget_map : {maps}'d0;\n\
                 always @(posedge clock) begin\n\
                 \x20   behind[{d}] <= looked_{d} < look_txid;\n\
                 \x20   shown[{d}] <= seen_{d} < show_txid;\n\
                 \x20   if (tell_valid & (tell_device == 3'd{d})) words_{d}[tell_map] <= tell_txid;\n\
                 \x20   valid_{d} <= (valid_{d} | told_{d}) & ~forgot_{d};\n\
                 \x20   if (reset) valid_{d} <= {maps}'d0;\n\
                 end\n",
                maps = last + 1,
            );
        }
        Verilog::Custom(code)
    }

    fn timing(&self) -> Vec<TimingInfo> {
        let inputs = ["reset", "tell_valid", "forget_valid", "look_map", "look_txid", "show_map", "show_txid"];
        crate::cells::clocked("heard", &inputs, &["behind", "shown"])
    }
}
