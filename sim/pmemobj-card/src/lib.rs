//! `libpmemobj.so.1` with a simulated card in it: the ordinary library, and what it calls when
//! `NEARPM_CARD=FILE` is set ([`nearpm_plug`]).

#![warn(missing_docs)]

// The library for programs, all of which is linked into this one.
extern crate nearpm_pmemobj as _;

/// Run by the loader, before the program. The linker is told to keep it, by its name.
#[used]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".init_array")]
#[allow(non_upper_case_globals, reason = "a symbol for the linker")]
pub static nearpm_pmemobj_card: extern "C" fn() = nearpm_plug::provide;
