//! What is done whether clients ask for it or not: removing what has expired, bringing home what
//! the log holds, and synchronising where nobody waits for that.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nearpm::Error;

use crate::batch::is_fatal;
use crate::options::Level;
use crate::service::Service;
use crate::shared::{Shared, now_ms};

/// Time between two looks for expired keys.
const HOUSEKEEPING: Duration = Duration::from_millis(100);
/// How long a look may take when there are many.
const SWEEPING: Duration = Duration::from_millis(20);
/// Time between two looks at the log.
const TIDYING: Duration = Duration::from_millis(25);
/// Time after which less of the log is worth the synchronisations that it takes to bring it home:
/// the next open has less to read.
const TIDIED: Duration = Duration::from_secs(1);
/// Bytes of the log that are worth it then.
const WORTH_TIDYING: u64 = 1 << 20;
/// Time after which pages of the pool's file that were brought home leave the process.
const LET_GO: Duration = Duration::from_secs(5);

/// Keeps house until the server stops.
pub fn house<S: Service>(shared: &Shared<S>, stopped: &Receiver<()>) -> Result<(), Error> {
    let every = Duration::from_millis(shared.options.sync_ms);
    let (mut swept, mut synchronised, mut tidied) = (Instant::now(), Instant::now(), Instant::now());
    let mut let_go = Instant::now();
    let is_async = shared.options.durability == Level::Async;
    let wait = if is_async { TIDYING.min(every) } else { TIDYING };
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        if is_async && synchronised.elapsed() >= every {
            synchronised = Instant::now();
            shared.pool.wait_durable()?;
        }
        // Beside those who serve clients: they would do it themselves when the log is full, and
        // their clients would wait.
        let is_time = tidied.elapsed() >= TIDIED;
        let usual = shared.pool.worth_tidying().max(WORTH_TIDYING);
        let done = shared.pool.tidy(if is_time { WORTH_TIDYING } else { usual })?;
        if done || is_time {
            tidied = Instant::now();
        }
        if let_go.elapsed() >= LET_GO {
            shared.pool.let_pages_go();
            let_go = Instant::now();
        }
        if swept.elapsed() < HOUSEKEEPING {
            continue;
        }
        match sweep(shared, now_ms()) {
            Err(error) if is_fatal(&error) => return Err(error),
            // What could not be removed now is dead all the same, and is looked for again.
            Err(error) => log::debug!("expired keys were not removed: {error}"),
            Ok(()) => {}
        }
        swept = Instant::now();
    }
    Ok(())
}

/// Removes what has expired, for a while.
fn sweep<S: Service>(shared: &Shared<S>, now_ms: u64) -> Result<(), Error> {
    let start = Instant::now();
    let turn = shared.turn(now_ms);
    shared.pool.read(|from| shared.service.tick(from, &turn))?;
    shared.count(&turn);
    while start.elapsed() < SWEEPING && shared.reclaim(now_ms)? > 0 {}
    Ok(())
}
