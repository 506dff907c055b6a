//! Persists at random places, as they come and partitioned first.

use anyhow::{Result, ensure};
use nearpm_gpm::Sorter;
use nearpm_gpu::{Launch, ObjectKind};

use super::{Bench, words};
use crate::kernels::micro;
use crate::pattern::pattern;
use crate::report::Report;

const GROUP: &str = "Random persists of 32 B";
/// Bytes of a place.
const PLACE: u64 = 32;
/// Places whose contents are looked at.
const LOOKS: usize = 100_000;

pub fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    // 2^bits places of 32 bytes: 512 MiB, 8 GiB.
    for bits in bench.scale.pick(vec![10u32], vec![24, 28]) {
        let bytes = PLACE << bits;
        let count: u32 = bench.scale.pick(1 << 10, 1 << 25);
        let region = bench.region(bytes + (4 << 20))?;
        let data = region.add("places", ObjectKind::Data, bytes, |_| Ok(()))?;
        let address = region.address(data.offset);
        let sorter = Sorter::new(&bench.device, count)?;
        let draw = |seed: u32| {
            let arguments = [sorter.input().0.into(), count.into(), bits.into(), seed.into()];
            bench.device.launch(micro().kernel("random_places"), &Launch::over(count.into(), 256, arguments))
        };
        let scatter = |places: u64, seed: u32| {
            let arguments = [address.into(), places.into(), count.into(), seed.into()];
            bench.device.launch(micro().kernel("scatter"), &Launch::over(2 * u64::from(count), 256, arguments))
        };
        let look = || -> Result<()> {
            let places = bench.words_at(sorter.input().0, count)?;
            for &place in places.iter().step_by((places.len() / LOOKS).max(1)) {
                let stored: Vec<u32> = words(&region.read_vec(data.offset + u64::from(place) * PLACE, 32)?).collect();
                let word = pattern(place, bench.last());
                let expected = [place, word, !place, !word];
                ensure!(stored[..4] == expected && stored[4..] == expected, "place {place} holds {stored:08x?}");
            }
            Ok(())
        };
        let size = bench.scale.pick(format!("{} KiB", bytes >> 10), format!("{} MiB", bytes >> 20));
        let work = f64::from(count) / 1e6;
        let naive = bench.times(|seed| Ok(draw(seed)?), |seed| scatter(sorter.input().0, seed))?;
        look()?;
        report.rate(GROUP, format!("as they come, over {size}"), work, "M/s", &naive, None);
        // One pass by the highest 8 bits: windows of 32 MiB of 8 GiB.
        let from = bits - bits.min(8);
        let partitioned = bench.times(
            |seed| Ok(draw(seed)?),
            |seed| {
                let (places, _) = sorter.sort(count, from, bits)?;
                scatter(places, seed)
            },
        )?;
        look()?;
        let aim = if bits == 28 { Some(">= 600") } else { None };
        report.rate(GROUP, format!("partitioned, with the partition, over {size}"), work, "M/s", &partitioned, aim);
    }
    Ok(())
}
