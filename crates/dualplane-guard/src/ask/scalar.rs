//! One small value of JSON, whatever stands there.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Longest name of a model that is kept.
const LONGEST_MODEL: usize = 200;

/// A small value; what is larger is walked and dropped.
#[derive(Debug, Default)]
pub(super) struct Scalar {
    /// `None` where it is null, negative or nothing of the kind: then nothing bounds it.
    pub(super) count: Option<u64>,
    pub(super) word: Option<String>,
    pub(super) yes: bool,
}

/// Reads a [`Scalar`].
pub(super) struct One;

impl<'de> DeserializeSeed<'de> for One {
    type Value = Scalar;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Scalar, D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_u64<E>(self, n: u64) -> Result<Scalar, E> {
        Ok(Scalar { count: Some(n), ..Scalar::default() })
    }

    fn visit_i64<E>(self, n: i64) -> Result<Scalar, E> {
        Ok(Scalar { count: u64::try_from(n).ok(), ..Scalar::default() })
    }

    fn visit_f64<E>(self, n: f64) -> Result<Scalar, E> {
        Ok(Scalar { count: (n >= 0.0).then(|| super::floor(n.ceil())), ..Scalar::default() })
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::default())
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Scalar, E> {
        Ok(Scalar { yes, ..Scalar::default() })
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        // Servers that validate leniently take "100" for 100.
        let word = text.chars().take(LONGEST_MODEL).collect();
        Ok(Scalar { count: text.trim().parse().ok(), word: Some(word), yes: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<Any>()?.is_some() {}
        Ok(Scalar::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, Any>()?.is_some() {}
        Ok(Scalar::default())
    }
}

/// A value that is walked and dropped. Unlike serde's `IgnoredAny` it is counted in the depth: a server recurses into it.
pub(super) struct Any;

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(One).map(|_| Self)
    }
}
