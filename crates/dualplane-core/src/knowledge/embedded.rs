//! The entries that are part of the program: signatures as `build.rs` packed them, all else as JSON.
//!
//! Signatures are nine tenths of it, and a report needs some tens of a thousand. To read them as JSON took a fifth of the time
//! of a short report; as constants they made the program a twentieth larger, because each of their twelve thousand texts
//! needs a place, a length and a relocation. Packed, they are cut at their separators, and no text is copied.

use std::borrow::Cow;
use std::str::Split;
use std::sync::LazyLock;

use dualplane_base::packed::Block;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error;

use super::packing::{FIELD, ITEM, RECORD};
use super::pattern::Pattern;
use super::signature::{Signature, Text, Texts};

/// All but signatures.
pub(super) static DOCUMENT: Block = include!(concat!(env!("OUT_DIR"), "/knowledge.rs"));

static PACKED: Block = include!(concat!(env!("OUT_DIR"), "/signatures.rs"));

/// In the order of their files.
pub(super) fn signatures() -> &'static [Signature] {
    static SIGNATURES: LazyLock<Vec<Signature>> = LazyLock::new(|| {
        PACKED.text().split(RECORD).filter_map(|record| Fields(record.split(FIELD)).signature()).collect()
    });
    &SIGNATURES
}

/// What is left of a signature; each is taken in turn.
struct Fields(Split<'static, char>);

impl Fields {
    /// In the order of [`super::packing::FIELDS`].
    fn signature(mut self) -> Option<Signature> {
        Some(Signature {
            id: self.text()?,
            versions: self.text()?,
            meaning: self.text()?,
            source: self.text()?,
            file: self.text()?,
            mark: self.word()?,
            literals: self.texts(),
            engine: self.text(),
            pattern: self.text(),
            until: self.text(),
            doubt: self.text(),
            words: self.texts(),
            context: self.texts(),
            unless: self.texts(),
            scope: self.word().unwrap_or_default(),
            class: self.word(),
            phase: self.word(),
            host_memory: self.word(),
            changed: self.two(),
            unchanged: self.two(),
            units: self.pairs(),
            any_level: self.text().is_some(),
            other_rank: self.text().is_some(),
            shared: self.text().is_some(),
            compiled: Pattern::new(),
        })
    }

    fn field(&mut self) -> Option<&'static str> {
        self.0.next().filter(|f| !f.is_empty())
    }

    fn text(&mut self) -> Option<Text> {
        self.field().map(Cow::Borrowed)
    }

    /// One of an enumeration's words, as the files write it.
    fn word<T: Deserialize<'static>>(&mut self) -> Option<T> {
        T::deserialize(IntoDeserializer::<Error>::into_deserializer(self.field()?)).ok()
    }

    fn items(&mut self) -> impl Iterator<Item = Text> + use<> {
        self.field().into_iter().flat_map(|f| f.split(ITEM)).map(Cow::Borrowed)
    }

    fn texts(&mut self) -> Texts {
        self.items().collect()
    }

    fn two(&mut self) -> Option<[Text; 2]> {
        let mut items = self.items();
        Some([items.next()?, items.next()?])
    }

    fn pairs(&mut self) -> Cow<'static, [(Text, Text)]> {
        let mut items = self.items();
        std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::packing::FIELDS;
    use super::*;

    /// Nothing is dropped in silence: what could not be read would be no signature.
    #[test]
    fn every_packed_signature_is_one() {
        assert!(DOCUMENT.is_whole() && PACKED.is_whole());
        let records: Vec<&str> = PACKED.text().split(RECORD).collect();
        assert!(records.iter().all(|r| r.split(FIELD).count() == FIELDS.len()));
        assert_eq!(signatures().len(), records.len());
        assert!(records.len() > 1000);
    }
}
