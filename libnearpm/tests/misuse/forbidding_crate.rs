//! compiles
#![forbid(unsafe_code, unused, dead_code, missing_docs, missing_debug_implementations, unreachable_pub, nonstandard_style)]
#![deny(unused_qualifications, single_use_lifetimes, missing_copy_implementations, non_local_definitions)]

use nearpm::prelude::*;

/// A node that points to its own type, with a length, under the name that types have inside of
/// themselves.
#[derive(Clone, Copy, Debug, Persistent)]
#[repr(C)]
pub(crate) struct Node {
    /// A number.
    pub(crate) value: u64,
    r#type: [u8; Self::LENGTH],
    next: Option<Ptr<Self>>,
    kids: PVec<Self>,
}

impl Node {
    const LENGTH: usize = 8;
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Pair<T: Copy, const N: usize = 2>([T; N], u64);

fn sum(from: &impl Load, node: Ptr<Node>, pair: Ptr<Pair<u64>>) -> Result<u64, Error> {
    let kids = node.kids().len(from)?;
    Ok(from.get(node.value())? + u64::from(from.get(node.r#type().at(0))?) + kids + from.get(pair._1())?)
}

fn main() -> Result<(), Error> {
    let memory = nearpm::memory::VolatileMemory::new(1 << 20);
    let pool = DirectPool::create_in(Box::new(memory), &Options::new())?;
    let sum = pool.tx(|tx| {
        let node = Node { value: 1, r#type: [2; Node::LENGTH], next: None, kids: PVec::with(tx, &[])? };
        let (node, pair) = (tx.alloc(node)?, tx.alloc(Pair([0; 2], 3))?);
        tx.set(node.next(), Some(node))?;
        sum(tx, node, pair)
    })?;
    if sum == 6 { Ok(()) } else { Err(Error::abort("another sum")) }
}
