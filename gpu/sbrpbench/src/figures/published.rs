//! What the paper's text says of its figures (sections 7.2 and 7.3).

/// A figure's title.
pub(super) fn title(number: u32) -> &'static str {
    match number {
        6 => "Figure 6: speed-up over epoch-far",
        7 => "Figure 7: scopes' share of the gain over epoch",
        8 => "Figure 8: read misses of persistent data in L1, of those of epoch-far",
        9 => "Figure 9: speed-up of SBRP-far over epoch-far with eADR",
        10 => "Figure 10: speed-up of SBRP-near over epoch-near",
        11 => "Figure 11: time of the longest recovery, of epoch-near's",
        _ => "Our improvements: speed-up over SBRP-near",
    }
}

/// What the text says of a bar.
pub(super) fn of(number: u32, label: &str) -> &'static str {
    match (number, label) {
        (6, "GPM") => "0.94 on average, 0.86 at least",
        (6, "SBRP-far") => "1.14 on average, 1.90 at most (Red); SRAD 1.03",
        (6, "epoch-near") => "2.16 on average",
        (6, "SBRP-near") => "1.15 times epoch-near on average, 1.68 at most (Red)",
        (7, _) => "0.77 on average",
        (8, "SBRP-far") => "below 1 but for SRAD and MQ",
        (9, "SBRP-far-eadr") => "1.14 on average",
        (10, "PB 50 %") => "1.15 on average; within 1 % of 100 %",
        (10, "SBRP-near-half") => "1.15 on average",
        (10, "SBRP-near-double") => "1.12 on average",
        (11, "SBRP-near") => "within 3 % on average; gpKVS 1.10",
        (11, "part of a run") => "0.007 to 0.42",
        _ => "",
    }
}
