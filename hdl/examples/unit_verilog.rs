//! Prints the Verilog of one unit (module `top`, of a card `nearpm_card`), to measure it alone:
//! `synthesise FILE --top top`.

use nearpm_hdl::dut::verilog_of;
use nearpm_hdl::persist_buffer::PaperBuffer;
use nearpm_hdl::units::completion_writer::CompletionWriter;
use nearpm_hdl::units::front::Front;
use nearpm_hdl::units::memory_split::MemorySplit;
use nearpm_hdl::units::multi_device::MultiDevice;
use nearpm_hdl::units::nearpm_unit::NearPmUnit;
use nearpm_hdl::units::persistence::Persistence;
use nearpm_hdl::units::registers::Registers;
use nearpm_hdl::{Parameters, Sizes, generate_bridge, generate_execution_side, generate_small_card};

fn main() {
    let unit = std::env::args().nth(1).expect("the name of a unit");
    let make = move || match unit.as_str() {
        "back" => generate_execution_side::<4>(),
        "back_of_one_unit" => generate_execution_side::<1>(),
        "back_of_two_units" => generate_execution_side::<2>(),
        "front" => verilog_of(Box::<Front>::default()),
        "small_card" => generate_small_card(&Parameters::default(), Sizes::SMALL).verilog,
        "pcie_bridge" => generate_bridge().verilog,
        "nearpm_unit" => verilog_of(Box::<NearPmUnit>::default()),
        "completion_writer" => verilog_of(Box::<CompletionWriter>::default()),
        "memory_split" => verilog_of(Box::<MemorySplit>::default()),
        "multi_device" => verilog_of(Box::<MultiDevice>::default()),
        "persist_buffer" => verilog_of(Box::<PaperBuffer>::default()),
        "persistence" => verilog_of(Box::<Persistence>::default()),
        "registers" => verilog_of(Box::<Registers>::default()),
        other => panic!("no unit {other}"),
    };
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(make);
    print!("{}", thread.expect("a thread").join().expect("the unit is made"));
}
