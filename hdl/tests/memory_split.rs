//! The second port to memory: bursts at random, against a memory behind each port.

use nearpm_hdl::dut::on_both_back_ends;
use nearpm_hdl::units::memory_split::MemorySplit;

macro_rules! on_the_split {
    ($($scenario:ident),+ $(,)?) => {
        $(
            #[test]
            fn $scenario() {
                on_both_back_ends::<MemorySplit>(nearpm_hdl_bench::split::$scenario);
            }
        )+
    };
}

on_the_split!(
    random_bursts_reach_their_port_and_come_back_in_order,
    a_line_a_cycle_each_way_and_no_port_starves,
    what_finds_nobody_waiting_passes_at_once,
);
