//! The shape of the tree, held by tests: which package and which module may use which, comments
//! that are narrow enough to be read, pages whose links lead somewhere.
//!
//! They read files and need no other package of the workspace, so that `./x lint` and `./x test`
//! run them within seconds, before anything else is built.

#![forbid(unsafe_code)]
