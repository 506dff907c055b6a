//! What the paper's text says of its figures (sections 7.2 and 7.3).

/// A figure's title.
pub(super) fn title(number: u32) -> &'static str {
    match number {
        6 => "Figure 6: speed-up",
        7 => "Figure 7: scopes' share of the gain over epochs",
        8 => "Figure 8: read misses of persistent data in L1",
        9 => "Figure 9: speed-up with eADR",
        10 => "Figure 10: speed-up of SBRP-near over epoch-near",
        11 => "Figure 11: time of the longest recovery",
        _ => "Our improvements: speed-up over SBRP-near",
    }
}

/// What the text says of a row.
pub(super) fn of(number: u32, label: &str) -> &'static str {
    match (number, label) {
        (6, "epoch-far over GPM") => "1.06 on average, 1.16 at most",
        (6, "SBRP-far over epoch-far") => "1.14 on average, 1.90 at most (Red); SRAD 1.03",
        (6, "SBRP-far over GPM") => "1.21 on average, 2.21 at most",
        (6, "epoch-near over epoch-far") => "2.16 on average",
        (6, "SBRP-near over epoch-near") => "1.15 on average, 1.68 at most (Red); SRAD 1.06",
        (6, "SBRP-near over SBRP-far") => "2.19 on average",
        (6, "SBRP-near over GPM") => "2.65 on average",
        (7, _) => "0.77 on average",
        (8, "SBRP-far of epoch-far") => "below 1 but for SRAD and MQ",
        (9, _) => "1.14 on average",
        (10, "PB 50 %") => "1.15 on average; within 1 % of 100 %",
        (10, "window 6") => "the best",
        (10, "bandwidth 50 %" | "bandwidth 100 %") => "1.15 on average",
        (10, "bandwidth 200 %") => "1.12 on average",
        (11, "SBRP-near of epoch-near") => "within 1.03 on average; gpKVS 1.10",
        (11, "SBRP-near of a run") => "0.007 to 0.42",
        _ => "",
    }
}
