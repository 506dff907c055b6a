// Numbers that look random: `gpu/gpmbench/src/pattern.rs`, and `unit` of `programs/mod.rs`.
#pragma once
static inline unsigned pattern(unsigned place, unsigned seed) {
    unsigned h = (place ^ seed) * 0x85ebca6bu;
    return (h ^ h >> 13) * 0xc2b2ae35u;
}
static inline float unit(unsigned place, unsigned seed) { return (float)(pattern(place, seed) >> 8) / (1 << 24); }
