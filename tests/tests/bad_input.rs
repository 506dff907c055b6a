//! Bad input where library, driver and card meet: each a clear error that says what, where and what to do; no panic, and no
//! effect on other data. What one crate refuses by itself is tested there: pool files and options in `libnearpm/tests/refusals.rs`,
//! every malformed command in `sim/tests/model_refusals.rs`, the driver's own limits in `driver/tests/card.rs`.

use std::time::{Duration, Instant};

use nearpm_sim::core::{CardCore, Medium};
use nearpm_sim::model::{Config, ModelCard};
use nearpm_tests::fuzzing;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

fn power_up(medium: Medium) -> Box<dyn CardCore> {
    Box::new(ModelCard::new(Config::default(), medium))
}

/// Feeds a fuzz target from seeds, for about the given time; the seed in the message of a failure repeats it.
fn fuzz(name: &str, seconds: u64, longest: usize, target: impl Fn(&[u8])) {
    let seconds = if std::env::var_os("NEARPM_THOROUGH").is_some() { 40 * seconds } else { seconds };
    let end = Instant::now() + Duration::from_secs(seconds);
    for seed in (0..).take_while(|_| Instant::now() < end) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut data = vec![0; rng.random_range(0..longest)];
        rng.fill_bytes(&mut data);
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| target(&data)));
        assert!(run.is_ok(), "{name}: seed {seed}, {} bytes", data.len());
    }
}

#[test]
fn the_pool_opener_takes_anything() {
    fuzz("pool opener", 3, 600, fuzzing::pool_opener);
}

#[test]
fn the_command_port_takes_anything() {
    fuzz("command port", 3, 6000, |data| fuzzing::command_port(&power_up, data));
}
