//! cannot lie in a pool
//! of `&T`, `Box<T>` and `Rc<T>` `Option<Ptr<T>>`

use nearpm::PersistentEnum;

#[derive(Clone, Copy, PersistentEnum)]
enum Name {
    None,
    Some(&'static str),
}

fn main() {}
