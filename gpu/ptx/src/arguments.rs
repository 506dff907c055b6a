//! The values given to a kernel's parameters.

/// Values for a kernel's parameters, in order; checked against the kernel's `.param` list at
/// launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    values: Vec<Vec<u8>>,
}

/// The arguments do not fit the kernel's `.param` list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// Too few or too many values.
    #[error("kernel {kernel} takes {expected} arguments, {given} were given")]
    Count { kernel: String, expected: usize, given: usize },
    /// A value of another size than the parameter.
    #[error("argument {index} of kernel {kernel} ({parameter}) is {expected} bytes, the value given has {given}")]
    Size { kernel: String, index: usize, parameter: String, expected: usize, given: usize },
}

impl Arguments {
    /// No arguments yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A 32-bit integer, signed or not.
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A 64-bit integer, signed or not.
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A `float`.
    pub fn f32(self, value: f32) -> Self {
        self.u32(value.to_bits())
    }

    /// A `double`.
    pub fn f64(self, value: f64) -> Self {
        self.u64(value.to_bits())
    }

    /// A pointer: an address given by [`crate::Gpu::allocate`], or in a [`crate::PmRange`].
    pub fn pointer(self, address: u64) -> Self {
        self.u64(address)
    }

    /// Any other value (a structure, a `short`), as its little-endian bytes.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.values.push(value.to_vec());
        self
    }

    /// The values, in order.
    pub fn values(&self) -> &[Vec<u8>] {
        &self.values
    }
}
