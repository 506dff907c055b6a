//! `nearpm card share`: one card for several processes.

use std::path::Path;

use anyhow::{Context, Result};
use nearpm_broker::{SEATS, Share};

use super::transport::Opened;

/// Shares a card until it has gone.
///
/// # Errors
/// Why it is not shared, or not any more.
pub fn run(opened: &Opened, socket: &Path) -> Result<String> {
    let share = Share::new(opened.card.clone())?;
    eprintln!("{} is shared on {} among at most {SEATS} processes", opened.what, socket.display());
    share.serve(socket).with_context(|| format!("the card is not shared any more on {}", socket.display()))?;
    Ok(String::new())
}
