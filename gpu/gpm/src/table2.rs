//! Table 2.
