//! Errors as C programs describe them: attributes by key, and predicates that choose errors by
//! these.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};

use super::status::{answer, refuse};
use super::{present, word};
use crate::error::Result;

/// What an attribute's value is: numbers of `GDS_error_attr_value_type_t`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Int = 0,
    Float = 1,
}

/// Keys that are there from the beginning, all of integers: index, count, the program's own number,
/// status, rank.
const GIVEN: usize = 5;
/// `GDS_EATTR_GDS_INDEX`
pub const INDEX: c_int = 0;
/// `GDS_EATTR_GDS_COUNT`
pub const COUNT: c_int = 1;
/// `GVR_EATTR_STATUS`
pub const STATUS: c_int = 3;
/// `GVR_EATTR_RANK`
pub const RANK: c_int = 4;

thread_local! {
    static KEYS: RefCell<Vec<Type>> = const { RefCell::new(Vec::new()) };
}

fn type_of(key: c_int) -> Result<Type> {
    let unknown = || refuse(format!("{key} is no key of an attribute: GDS_define_error_attr_key gives more"));
    let at = usize::try_from(key).map_err(|_| unknown())?;
    match at.checked_sub(GIVEN) {
        None => Ok(Type::Int),
        Some(own) => KEYS.with_borrow(|keys| keys.get(own).copied()).ok_or_else(unknown),
    }
}

/// An error: the bits of each attribute's value.
#[derive(Clone, Default, Debug, PartialEq, Eq)]
pub struct Description {
    attributes: BTreeMap<c_int, u64>,
}

impl Description {
    pub fn with(mut self, key: c_int, value: u64) -> Description {
        self.attributes.insert(key, value);
        self
    }

    /// As words, for other ranks: how many attributes, then keys and values.
    pub fn words(&self) -> Vec<u64> {
        let pairs = self.attributes.iter().flat_map(|(key, value)| [*key as u64, *value]);
        std::iter::once(self.attributes.len() as u64).chain(pairs).collect()
    }

    /// Reads what [`Description::words`] made, one after the other.
    pub fn all_of_words(mut words: &[u64]) -> Vec<Description> {
        let mut all = Vec::new();
        while let Some((count, rest)) = words.split_first() {
            let (own, next) = rest.split_at((2 * *count as usize).min(rest.len()));
            let attributes = own.chunks_exact(2).map(|pair| (pair[0] as c_int, pair[1])).collect();
            all.push(Description { attributes });
            words = next;
        }
        all
    }
}

/// What must hold of an attribute: numbers of `GDS_error_match_expr_t`.
#[derive(Clone, Copy)]
enum Match {
    Any,
    Absent,
    Equal(u64),
    Range(u64, u64),
}

/// A condition on one attribute.
#[derive(Clone, Copy)]
pub struct Term {
    key: c_int,
    of: Type,
    wanted: Match,
}

impl Term {
    fn holds(&self, error: &Description) -> bool {
        let value = error.attributes.get(&self.key).copied();
        let within = |value: u64, low: u64, high: u64| match self.of {
            Type::Int => (low as i64..=high as i64).contains(&(value as i64)),
            Type::Float => (f64::from_bits(low)..=f64::from_bits(high)).contains(&f64::from_bits(value)),
        };
        match (self.wanted, value) {
            (Match::Any, value) => value.is_some(),
            (Match::Absent, value) => value.is_none(),
            (Match::Equal(wanted), Some(value)) => within(value, wanted, wanted),
            (Match::Range(low, high), Some(value)) => within(value, low, high),
            (_, None) => false,
        }
    }
}

/// Conditions that all have to hold; none: every error.
#[derive(Clone, Default)]
pub struct Predicate {
    terms: Vec<Term>,
}

impl Predicate {
    pub fn holds(&self, error: &Description) -> bool {
        self.terms.iter().all(|term| term.holds(error))
    }
}

/// Hands a new object out.
///
/// # Safety
/// `to` is null or points to a pointer of the caller's.
unsafe fn hand_out<T>(to: *mut *mut T, what: &str, object: T) -> Result<()> {
    present(to, what)?;
    // SAFETY: by the caller.
    unsafe { *to = Box::into_raw(Box::new(object)) };
    Ok(())
}

/// Takes an object back, and clears the caller's pointer.
///
/// # Safety
/// `from` is null or points to a pointer that `hand_out` has set, or that is null.
unsafe fn take_back<T>(from: *mut *mut T, what: &str) -> Result<()> {
    present(from, what)?;
    // SAFETY: by the caller.
    let object = std::mem::replace(unsafe { &mut *from }, std::ptr::null_mut());
    present(object, what)?;
    // SAFETY: made by `hand_out`, and freed once, as the pointer is null now.
    drop(unsafe { Box::from_raw(object) });
    Ok(())
}

/// # Safety
/// The pointer is null or of this library and not freed.
unsafe fn object<'a, T>(at: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: by the caller.
    unsafe { at.as_mut() }.ok_or_else(|| refuse(format!("{what} is a null pointer")))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_define_error_attr_key(
    _name: *const c_char,
    _size: usize,
    of: c_int,
    key: *mut c_int,
) -> c_int {
    answer(|| {
        present(key, "the key")?;
        let of = match of {
            0 => Type::Int,
            1 => Type::Float,
            _ => return Err(refuse(format!("{of} is no GDS_error_attr_value_type_t"))),
        };
        let number = KEYS.with_borrow_mut(|keys| {
            keys.push(of);
            GIVEN + keys.len() - 1
        });
        // SAFETY: by the header.
        unsafe { *key = number as c_int };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_create_error_descriptor(desc: *mut *mut Description) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { hand_out(desc, "the descriptor", Description::default()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_free_error_descriptor(desc: *mut *mut Description) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { take_back(desc, "the descriptor") })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_add_error_attr(desc: *mut Description, key: c_int, value: *const c_void) -> c_int {
    answer(|| {
        present(value, "the value")?;
        type_of(key)?;
        // SAFETY: by the header, values have 8 bytes.
        unsafe { object(desc, "the descriptor")?.attributes.insert(key, word(value)) };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_get_error_attr(
    desc: *mut Description,
    key: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    answer(|| {
        present(flag, "the flag")?;
        type_of(key)?;
        // SAFETY: by the header.
        let found = unsafe { object(desc, "the descriptor")? }.attributes.get(&key).copied();
        if let Some(found) = found {
            present(value, "the value")?;
            // SAFETY: by the header it has room for 8 bytes.
            unsafe { value.cast::<u64>().write_unaligned(found) };
        }
        // SAFETY: by the header.
        unsafe { *flag = found.is_some().into() };
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_create_error_pred(pred: *mut *mut Predicate) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { hand_out(pred, "the predicate", Predicate::default()) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_free_error_pred(pred: *mut *mut Predicate) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { take_back(pred, "the predicate") })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_create_error_pred_term(
    key: c_int,
    expression: c_int,
    values: *const c_void,
    term: *mut *mut Term,
) -> c_int {
    answer(|| {
        let of = type_of(key)?;
        // SAFETY: by the header, one value or two.
        let value = |at: usize| {
            present(values, "the values").map(|()| unsafe { word(values.cast::<u8>().wrapping_add(8 * at).cast()) })
        };
        let wanted = match expression {
            0 => Match::Any,
            1 => Match::Absent,
            2 => Match::Equal(value(0)?),
            3 => Match::Range(value(0)?, value(1)?),
            _ => return Err(refuse(format!("{expression} is no GDS_error_match_expr_t"))),
        };
        // SAFETY: by the header.
        unsafe { hand_out(term, "the term", Term { key, of, wanted }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_free_error_pred_term(term: *mut *mut Term) -> c_int {
    // SAFETY: by the header.
    answer(|| unsafe { take_back(term, "the term") })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn GDS_add_error_pred_term(pred: *mut Predicate, term: *mut Term) -> c_int {
    answer(|| {
        // SAFETY: by the header.
        unsafe {
            let term = *object(term, "the term")?;
            object(pred, "the predicate")?.terms.push(term);
        }
        Ok(())
    })
}
