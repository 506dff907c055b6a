//! `libnearpm.so.0` with a simulated card in it: the ordinary library, and what it calls when
//! `NEARPM_CARD=FILE` is set ([`nearpm_plug`]).

#![warn(missing_docs)]

// The library for programs, all of which is linked into this one.
extern crate nearpm_c as _;

/// Run by the loader, before the program.
#[used]
#[unsafe(link_section = ".init_array")]
static PROVIDE: extern "C" fn() = nearpm_plug::provide;
