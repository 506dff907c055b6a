//! Microprograms of the NearPM units, their assembler and their image
