//! What Valgrind's callgrind writes of a run.

use std::collections::BTreeMap;

/// Instructions of a profile, all together.
///
/// # Panics
/// If the profile is none.
pub fn instructions(profile: &str) -> u64 {
    let total = profile.lines().find_map(|line| line.strip_prefix("totals: "));
    total.and_then(|total| total.trim().parse().ok()).expect("callgrind says how many there are")
}

/// Instructions of a profile that functions have executed themselves: of all, and of those whose
/// names contain each of `wanted`.
///
/// # Panics
/// If the profile is none.
pub fn own_instructions<const N: usize>(profile: &str, wanted: [&str; N]) -> (u64, [u64; N]) {
    let mut names: BTreeMap<&str, [bool; N]> = BTreeMap::new();
    let (mut all, mut sums, mut of, mut is_call) = (0, [0; N], [false; N], false);
    for line in profile.lines() {
        // A name is said once, where it calls or is called, and its number from then on.
        let [function, called] = ["fn=", "cfn="].map(|key| line.strip_prefix(key));
        if let Some(named) = function.or(called) {
            let (number, name) = named.split_once(' ').unwrap_or((named, ""));
            let known = *names.entry(number).or_insert_with(|| wanted.map(|wanted| name.contains(wanted)));
            of = if function.is_some() { known } else { of };
        } else if line.starts_with("calls=") {
            // What the called function took stands on the next line.
            is_call = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost: u64 =
                line.split_once(' ').map_or(0, |(_, cost)| cost.trim().parse().expect("a cost is a number"));
            if !std::mem::take(&mut is_call) {
                all += cost;
                sums.iter_mut().zip(of).for_each(|(sum, is_of)| *sum += if is_of { cost } else { 0 });
            }
        }
    }
    (all, sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_calls_is_not_its_own() {
        let profile = "events: Ir\n\nfn=(1) main\n16 5\ncfn=(2) crc32c\ncalls=3 20\n17 60\n18 7\n\nfn=(2)\n20 40\n+1 20\n\nfn=(3) other\n* 2\ntotals: 74\n";
        assert_eq!(own_instructions(profile, ["crc", "main", "none"]), (74, [60, 12, 0]));
        assert_eq!(instructions(profile), 74);
    }
}
