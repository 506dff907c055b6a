//! Events of pools for the crate `tracing`, behind the feature of that name. Without it they are
//! nothing.

/// An event: level, fields, message.
macro_rules! event {
    ($level:ident, $($what:tt)*) => {
        #[cfg(feature = "tracing")]
        tracing::$level!($($what)*);
    };
}

pub(crate) use event;
