//! borrowed data escapes outside of closure

use nearpm::prelude::*;

fn escape(pool: &DirectPool) {
    let mut kept = None;
    let _ = pool.tx(|tx| {
        kept = Some(tx);
        Ok(())
    });
}

fn main() {}
