//! PCIe function trait, registers, command posting and completions of a NearPM card
pub mod pci;
