//! What an instruction asks for, with the addresses of its command put in.

use crate::dut::{PortValue, Ports};
use nearpm_interface::firmware::{Instruction, Operand};
use nearpm_interface::geometry::LINE_U64;
use rust_hdl::prelude::*;

/// An operation of a unit's memory engine.
#[derive(Copy, Clone, Debug, Default, PartialEq, LogicStruct, PortValue)]
pub struct Operation {
    /// First line to read; copies only.
    pub from: Bits<34>,
    /// First line to write.
    pub line: Bits<34>,
    /// First byte of the range in its first line.
    pub offset: Bits<6>,
    /// Last byte of the range in its last line.
    pub end_byte: Bits<6>,
    /// Lines, 1 to 4097.
    pub count: Bits<13>,
    /// Writes whole lines, not only the bytes of the range.
    pub whole: Bit,
    /// Writes the head of a log entry.
    pub generate_head: Bit,
    /// Writes the 8-byte value.
    pub store: Bit,
    /// The context that it belongs to.
    pub context: Bit,
}

/// Bits of [`Classify`]'s answer: the word is an instruction. It is none where no assembler makes
/// it, and where it is a head about the auxiliary operand, whose pool offset is not known. A
/// control store that was never written holds no instructions.
pub const IS_SOUND: usize = 0;
/// `End`.
pub const IS_END: usize = 1;
/// `Copy`.
pub const IS_COPY: usize = 2;
/// `Generate`.
pub const IS_GENERATE: usize = 3;
/// `Store`.
pub const IS_STORE: usize = 4;
/// `Wait`.
pub const IS_WAIT: usize = 5;

/// Says what kind of instruction a word is, combinationally; one bit of `kinds` is high beside
/// [`IS_SOUND`], or none is.
///
/// The control store keeps the answer beside the word, so that it costs nothing where the word is
/// executed.
#[derive(LogicBlock, Default, Ports)]
pub struct Classify {
    /// The word.
    pub word: Signal<In, Bits<32>>,
    /// [`IS_SOUND`], and a bit for each kind.
    pub kinds: Signal<Out, Bits<6>>,
}

impl Logic for Classify {
    fn update(&mut self) {
        use Instruction::{Copy, End, Generate, Store, Wait};
        let kind = match Instruction::decode(self.word.val().to_u64() as u32) {
            None | Some(Generate { object: Operand::Auxiliary, .. }) => None,
            Some(End { .. }) => Some(IS_END),
            Some(Copy { .. }) => Some(IS_COPY),
            Some(Generate { .. }) => Some(IS_GENERATE),
            Some(Store { .. }) => Some(IS_STORE),
            Some(Wait) => Some(IS_WAIT),
        };
        self.kinds.next = kind.map_or(0u64, |kind| 1 << kind | 1 << IS_SOUND).into();
    }

    fn connect(&mut self) {
        self.kinds.connect();
    }

    fn hdl(&self) -> Verilog {
        Verilog::Custom(format!(
            "wire [3:0] op = word[31:28];\n\
             wire three = &word[27:26];\n\
             always @(*) begin\n\
             \x20   kinds[{IS_END}] = op == 4'd0 & ~|word[27:8];\n\
             \x20   kinds[{IS_COPY}] = op == 4'd1 & ~three & ~&word[25:24] & ~|word[22:16];\n\
             \x20   kinds[{IS_GENERATE}] = op == 4'd2 & ~three & ~word[25] & ~|word[23:8];\n\
             \x20   kinds[{IS_STORE}] = op == 4'd3 & ~three & ~|word[25:0];\n\
             \x20   kinds[{IS_WAIT}] = op == 4'd4 & ~|word[27:0];\n\
             \x20   kinds[{IS_SOUND}] = |kinds[{IS_WAIT}:{IS_END}];\n\
             end\n"
        ))
    }
}

/// Puts the operands of its command into an instruction, combinationally: an operand multiplexer
/// and one addition. What it says of an instruction that must not be executed means nothing.
#[derive(LogicBlock, Default, Ports)]
pub struct Decode {
    /// The instruction.
    pub instruction: Signal<In, Bits<32>>,
    /// Device address of the source.
    pub source: Signal<In, Bits<40>>,
    /// Device address of the destination.
    pub destination: Signal<In, Bits<40>>,
    /// Device address of the auxiliary operand.
    pub auxiliary: Signal<In, Bits<40>>,
    /// Offset of the source in the pool.
    pub source_offset: Signal<In, Bits<64>>,
    /// Offset of the destination in the pool.
    pub destination_offset: Signal<In, Bits<64>>,
    /// Bytes of the operands, 1 to 262144.
    pub length: Signal<In, Bits<19>>,
    /// The context that executes.
    pub in_context: Signal<In, Bit>,
    /// Status of `End`; kind of `Generate`.
    pub code: Signal<Out, Bits<8>>,
    /// Pool offset of the object of `Generate`.
    pub object: Signal<Out, Bits<64>>,
    /// What `Copy`, `Generate` and `Store` ask the memory engine for.
    pub operation: Signal<Out, Operation>,
}

/// Bit of `from_lines` (and of `to_lines`) in an instruction, found by encoding one.
fn copy_field(from_lines: u8, to_lines: u8) -> u32 {
    let blank =
        Instruction::Copy { from: Operand::Source, from_lines: 0, to: Operand::Source, to_lines: 0, lines: false };
    let set = Instruction::Copy { from: Operand::Source, from_lines, to: Operand::Source, to_lines, lines: false };
    (blank.encode() ^ set.encode()).trailing_zeros()
}

impl Decode {
    fn address(&self, operand: Operand) -> u64 {
        match operand {
            Operand::Source => self.source.val(),
            Operand::Destination => self.destination.val(),
            Operand::Auxiliary => self.auxiliary.val(),
        }
        .to_u64()
    }

    /// The Verilog model computes these fields whatever the instruction is.
    fn fields(&self) -> (Operation, u64, u8) {
        let word = self.instruction.val().to_u64() as u32;
        let operand = |code: u32| Operand::from_code((code & 3) as u8).unwrap_or(Operand::Auxiliary);
        let (first, second) = (operand(word >> 26), operand(word >> 24));
        let (from, to) = (self.address(first), self.address(second));
        let whole = word >> 23 & 1 == 1;
        let (is_copy, store) = (word >> 28 == 1, word >> 28 == 3);
        let length = self.length.val().to_u64();
        let line = if is_copy { to } else { from } / LINE_U64;
        let (offset, end) = match (is_copy, store) {
            (true, _) => {
                let offset = if whole { from } else { to } % LINE_U64;
                (offset, offset + length + LINE_U64 - 1)
            }
            (_, true) => (from % LINE_U64, from % LINE_U64),
            _ => (0, 0),
        };
        let mask34 = (1 << 34) - 1;
        let operation = Operation {
            from: ((from / LINE_U64 + u64::from(word >> 8 & 0xff)) & mask34).into(),
            line: ((line + if is_copy { u64::from(word & 0xff) } else { 0 }) & mask34).into(),
            offset: offset.into(),
            end_byte: (end % LINE_U64).into(),
            count: (if is_copy { (end / LINE_U64) & 0x1fff } else { 1 }).into(),
            whole: if is_copy { whole } else { !store },
            generate_head: word >> 28 == 2,
            store,
            context: self.in_context.val(),
        };
        let object = match second {
            Operand::Source => self.source_offset.val(),
            _ => self.destination_offset.val(),
        };
        (operation, object.to_u64(), word as u8)
    }
}

impl Logic for Decode {
    fn update(&mut self) {
        let (operation, object, code) = self.fields();
        self.code.next = u64::from(code).into();
        self.object.next = object.into();
        self.operation.next = operation;
    }

    fn connect(&mut self) {
        self.code.connect();
        self.object.connect();
        self.operation.connect();
    }

    fn hdl(&self) -> Verilog {
        let (from_lines, to_lines) = (copy_field(1, 0), copy_field(0, 1));
        let blank = Operation::default();
        let fields = [
            ("from + {26'd0, from_lines}", blank.get_my_offset_from(), 34),
            ("to + {26'd0, copy ? to_lines : 8'd0}", blank.get_my_offset_line(), 34),
            ("offset", blank.get_my_offset_offset(), 6),
            ("copy ? finish[5:0] : store ? offset : 6'd0", blank.get_my_offset_end_byte(), 6),
            ("copy ? finish[18:6] : 13'd1", blank.get_my_offset_count(), 13),
            ("copy ? whole : ~store", blank.get_my_offset_whole(), 1),
            ("head", blank.get_my_offset_generate_head(), 1),
            ("store", blank.get_my_offset_store(), 1),
            ("in_context", blank.get_my_offset_context(), 1),
        ];
        let mut code = format!(
            "wire [3:0] op = instruction[31:28];\n\
             wire [1:0] one = instruction[27:26];\n\
             wire [1:0] two = instruction[25:24];\n\
             wire whole = instruction[23];\n\
             wire [7:0] from_lines = instruction[{from_top}:{from_lines}];\n\
             wire [7:0] to_lines = instruction[{to_top}:{to_lines}];\n\
             wire copy = op == 4'd1;\n\
             wire head = op == 4'd2;\n\
             wire store = op == 4'd3;\n\
             wire [39:0] first = one == 2'd0 ? source : one == 2'd1 ? destination : auxiliary;\n\
             wire [39:0] second = two == 2'd0 ? source : two == 2'd1 ? destination : auxiliary;\n\
             wire [33:0] from = first[39:6];\n\
             wire [33:0] to = copy ? second[39:6] : first[39:6];\n\
             wire [5:0] offset = copy ? (whole ? first[5:0] : second[5:0]) : store ? first[5:0] : 6'd0;\n\
             wire [18:0] finish = length + {{13'd0, offset}} + 19'd63;\n\
             always @(*) begin\n\
             \x20   code = instruction[7:0];\n\
             \x20   object = two == 2'd0 ? source_offset : destination_offset;\n",
            from_top = from_lines + 7,
            to_top = to_lines + 7,
        );
        for (value, low, bits) in fields {
            code += &format!("    operation[{low} +: {bits}] = {value};\n");
        }
        Verilog::Custom(code + "end\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dut::PortValue;

    #[test]
    fn an_operation_is_as_wide_as_its_fields() {
        assert_eq!(Operation::BITS, 34 + 34 + 6 + 6 + 13 + 4);
        assert_eq!(Operation::default().to_value(), 0u64);
    }
}
