//! The check of pools: it finds each class of damage where that is made, and nothing where there is
//! none.

mod classes;
mod copy;
mod flips;
mod hostile;
mod pools;
mod repair;
