//! What is observed when the power has failed.

use crate::litmus::{NOT_LOADED, Observable, Test, Value};

/// Values of a test's observables, in their order.
pub type Outcome = Vec<Value>;

/// The outcome of a state: what PM holds, registers, marks, and how many launches have ended.
pub(crate) fn observe(
    test: &Test,
    word: impl Fn(usize) -> Value,
    registers: &[Value],
    marks: u16,
    ended: u8,
) -> Outcome {
    let value = |observable: &Observable| match *observable {
        Observable::Word(index) => word(index),
        Observable::Register(register) => registers[register],
        Observable::Mark(mark) => (marks >> mark & 1) as Value,
        Observable::End => Value::from(usize::from(ended) == test.launches()),
    };
    test.observables.iter().map(value).collect()
}

/// The values as litmus files write them.
pub fn in_words(outcome: &[Value]) -> Vec<String> {
    let word = |value: &Value| if *value == NOT_LOADED { "-".into() } else { value.to_string() };
    outcome.iter().map(word).collect()
}
