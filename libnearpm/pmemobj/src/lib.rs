//! `libpmemobj.so.1` over [`nearpm::direct`]: programs that were compiled against PMDK run on it
//! unmodified.
//!
//! | file | holds |
//! |---|---|
//! | `abi.rs` | types, constants and variables that programs share with the library |
//! | `thread.rs` | what each thread has |
//! | `thread_end.rs` | what is done when a thread ends |
//! | `error.rs` | errno, messages, and the end of a process that cannot go on |
//! | `environment.rs` | what environment variables ask for |
//! | `head.rs` | layout and root of a pool, on the medium |
//! | `open.rs`, `registry.rs` | open pools, and how they are found by address and by identifier |
//! | `reserve.rs` | memory for when the system gives no more |
//! | `set.rs` | pool sets |
//! | `pool.rs` | create, open, close, check, root |
//! | `object.rs` | headers of objects, and space for new ones |
//! | `alloc.rs` | allocation outside of transactions |
//! | `defrag.rs` | objects that move to lower addresses |
//! | `action.rs` | reserve and publish |
//! | `words.rs` | words that a change gives values |
//! | `transaction.rs`, `tx/` | what a thread knows of its transaction, and the calls |
//! | `list.rs` | lists that change atomically |
//! | `lock.rs` | locks in pools, volatile values |
//! | `memory.rs` | persist, flush, drain, copies |
//! | `iterate.rs` | objects one after the other |
//! | `control/`, `ctl/` | values that can be set, and `pmemobj_ctl_*`, `PMEMOBJ_CONF` |
//! | `text.rs` | lengths of texts |
//!
//! # Unsafe code
//! C calls every exported function with the obligations of PMDK's manual pages: handles are those
//! of open pools, identifiers those of objects in them, pointers valid for what the page says. What
//! a comment at an unsafe block says is beyond that.
//!
//! A transaction that aborts jumps over frames (`longjmp`). Frames between the caller's `setjmp`
//! and the jump hold plain data alone: what has a destructor ends in a function that returns
//! before.

#![warn(missing_docs)]
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!(
    "the interface of libpmemobj is written for Linux on x86-64: jmp_buf, variadic calls, thread-local storage"
);

mod abi;
mod action;
mod alloc;
mod control;
mod ctl;
mod defrag;
mod environment;
mod error;
mod head;
mod iterate;
mod list;
mod lock;
mod memory;
mod object;
mod open;
mod pool;
mod registry;
mod reserve;
mod set;
mod text;
mod thread;
mod thread_end;
mod transaction;
mod tx;
mod words;
