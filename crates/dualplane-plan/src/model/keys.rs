//! Reading of a JSON object by key, with the spellings that models use, and a memory of what was read.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

/// No dimension of a real model is larger, and products of three stay far from the end of `u64`.
const LARGEST: u64 = 1 << 40;

/// One object of a configuration.
pub(crate) struct Keys<'a> {
    value: &'a Value,
    read: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(value: &'a Value) -> Self {
        Self { value, read: RefCell::default() }
    }

    /// The first of these keys that is there and not null.
    pub(crate) fn get(&self, names: &[&'static str]) -> Option<&'a Value> {
        let mut read = self.read.borrow_mut();
        read.extend(names);
        names.iter().find_map(|n| self.value.get(n).filter(|v| !v.is_null()))
    }

    pub(crate) fn u64(&self, names: &[&'static str]) -> Option<u64> {
        let value = self.get(names)?;
        match value.as_array().map(Vec::as_slice) {
            // One entry a layer, all alike.
            Some([first, rest @ ..]) if rest.iter().all(|v| v == first) => number(first),
            _ => number(value),
        }
    }

    /// The config does not say it at all, not even `null`.
    pub(crate) fn lacks(&self, name: &str) -> bool {
        self.value.get(name).is_none()
    }

    /// A number, or `default`.
    pub(crate) fn u64_or(&self, name: &'static str, default: u64) -> u64 {
        self.u64(&[name]).unwrap_or(default)
    }

    pub(crate) fn bool(&self, name: &'static str) -> Option<bool> {
        self.get(&[name])?.as_bool()
    }

    /// A switch that is off where it is not given.
    pub(crate) fn on(&self, name: &'static str) -> bool {
        self.bool(name) == Some(true)
    }

    pub(crate) fn str(&self, name: &'static str) -> Option<&'a str> {
        self.get(&[name])?.as_str()
    }

    pub(crate) fn list(&self, name: &'static str) -> Option<&'a Vec<Value>> {
        self.get(&[name])?.as_array()
    }

    pub(crate) fn object(&self, name: &'static str) -> Option<&'a Value> {
        self.get(&[name]).filter(|v| v.is_object())
    }

    /// Keys that nobody asked for.
    pub(crate) fn unread(&self) -> Vec<String> {
        let read = self.read.borrow();
        self.value
            .as_object()
            .map(|o| o.keys().filter(|k| !read.contains(k.as_str())).cloned().collect())
            .unwrap_or_default()
    }
}

/// A whole number within reason; 4096.0 is one too.
pub(crate) fn number(value: &Value) -> Option<u64> {
    let n = value.as_u64().or_else(|| {
        let f = value.as_f64()?;
        // `as` saturates; what is not whole is no size.
        (f >= 0.0 && f.fract() == 0.0).then_some(f as u64)
    })?;
    (n <= LARGEST).then_some(n)
}
