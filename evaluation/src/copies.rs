//! The paper's micro-benchmark (Fig. 17), and logs that nobody waits for, on either device: the
//! host and the link of a profile, and the model or the RTL as its card. What the RTL gave is
//! stored, so that the report needs no hardware tool chain; a test runs it anew and compares every
//! digit.

use anyhow::{Context, Result, ensure};
use nearpm_sim::microbenchmark::{self, Point, SIZES};
use nearpm_sim::profile::Profile;
use serde::{Deserialize, Serialize};

use crate::device::{self, Device, MakeRtl};

/// Copies of each size.
pub const COPIES: u64 = 50;
/// Logs of which the time is taken together.
pub const LOGS: u64 = 20_000;
/// Bytes of each of them.
pub const LOG_BYTES: u32 = 64;
/// What the RTL gave with the profile of this project's card.
const STORED: &str = include_str!("../results/copies-rtl.csv");

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    /// A copy that is waited for.
    Copy,
    /// A log that is not.
    Log,
}

/// A line of the table. Times are nanoseconds; those of a log are the processor's for a command of
/// the card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    profile: String,
    what: What,
    bytes: u32,
    commit: String,
    origin: String,
    cpu_ns: Option<f64>,
    card_ns: f64,
    record_ns: Option<f64>,
    wait_ns: Option<f64>,
}

/// Times of one device.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies {
    /// Name or path of the profile.
    pub profile: String,
    /// What played the card.
    pub device: Device,
    /// Commit of the program that ran it.
    pub commit: String,
    /// Copies, by size.
    pub points: Vec<Point>,
    /// Nanoseconds of the processor for an undo log of [`LOG_BYTES`] that it does not wait for, its
    /// fence included.
    pub log_ns: f64,
}

impl Copies {
    /// Runs all sizes.
    ///
    /// # Errors
    /// If the device cannot be made, or the card refuses something.
    pub fn run(profile: &Profile, device: Device, rtl: Option<&MakeRtl<'_>>, commit: &str) -> Result<Copies> {
        let cards = match device {
            Device::Model => Box::new(microbenchmark::model(profile)),
            Device::Rtl => device::rtl(profile, profile.units(), rtl)?,
        };
        Ok(Copies {
            profile: profile.name.clone(),
            device,
            commit: commit.to_owned(),
            points: microbenchmark::run(profile, &*cards, &SIZES, COPIES)?,
            log_ns: microbenchmark::asynchronous_log(profile, &*cards, LOG_BYTES, LOGS)?,
        })
    }

    /// What the RTL gave with the profile of this project's card.
    ///
    /// # Errors
    /// If the stored table is wrong.
    pub fn stored() -> Result<Copies> {
        Copies::parse(STORED).context("the stored copies of the RTL")
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what, bytes, card_ns, rest: Option<&Point>| Row {
            profile: self.profile.clone(),
            what,
            bytes,
            commit: self.commit.clone(),
            origin: self.device.origin().to_owned(),
            cpu_ns: rest.map(|point| point.cpu_ns),
            card_ns,
            record_ns: rest.map(|point| point.record_ns),
            wait_ns: rest.map(|point| point.wait_ns),
        };
        let copies = self.points.iter().map(|point| row(What::Copy, point.bytes, point.card_ns, Some(point)));
        copies.chain([row(What::Log, LOG_BYTES, self.log_ns, None)]).collect()
    }

    /// As a table of comma-separated values.
    ///
    /// # Errors
    /// If it cannot be written as text.
    pub fn csv(&self) -> Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        self.rows().into_iter().try_for_each(|row| writer.serialize(row))?;
        Ok(String::from_utf8(writer.into_inner()?)?)
    }

    /// Reads what [`Copies::csv`] has made.
    ///
    /// # Errors
    /// If it is something else.
    pub fn parse(text: &str) -> Result<Copies> {
        let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect::<csv::Result<Vec<Row>>>()?;
        let first = rows.first().context("it is empty")?;
        let found = Device::ALL.into_iter().find(|device| device.origin() == first.origin);
        let device = found.with_context(|| format!("its origin is {:?}", first.origin))?;
        let same =
            |row: &Row| (&row.profile, &row.commit, &row.origin) == (&first.profile, &first.commit, &first.origin);
        ensure!(rows.iter().all(same), "its lines are of several runs");
        let point = |row: &Row| {
            let all = row.cpu_ns.zip(row.record_ns).zip(row.wait_ns);
            let ((cpu_ns, record_ns), wait_ns) =
                all.with_context(|| format!("a time of {} B is missing", row.bytes))?;
            Ok(Point { bytes: row.bytes, cpu_ns, card_ns: row.card_ns, record_ns, wait_ns })
        };
        let copies = rows.iter().filter(|row| row.what == What::Copy);
        let points = copies.map(point).collect::<Result<Vec<Point>>>()?;
        let log = rows.iter().find(|row| row.what == What::Log).context("the log is missing")?;
        let (profile, commit) = (first.profile.clone(), first.commit.clone());
        Ok(Copies { profile, device, commit, points, log_ns: log.card_ns })
    }
}

#[cfg(test)]
mod tests {
    use nearpm_sim::microbenchmark::SIZES;

    use super::*;
    use crate::plan::OURS;

    #[test]
    fn what_is_stored_is_of_the_rtl_and_reads_back_as_it_was_written() {
        let stored = Copies::stored().unwrap();
        assert_eq!((stored.profile.as_str(), stored.device), (OURS, Device::Rtl));
        assert_eq!(stored.points.iter().map(|point| point.bytes).collect::<Vec<_>>(), SIZES);
        assert_eq!(stored.csv().unwrap(), STORED);
        assert!(Copies::parse(&STORED.replacen("RTL cycles", "model", 1)).is_err(), "two devices in one table");
        assert!(Copies::parse("").is_err());
    }
}
