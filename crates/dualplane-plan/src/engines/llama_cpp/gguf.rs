//! The header of a GGUF file: what its metadata say, and name, shape and type of each tensor.
//!
//! The caller hands over the beginning of the file; how long the header is, only the header tells. Nothing that it
//! claims is believed before the bytes are there.

use std::collections::BTreeMap;

use super::ggml::GgmlType;

/// No model has more tensors, metadata or files; larger counts are broken or hostile.
const MAX_TENSORS: u64 = 65_536;
const MAX_KEYS: u64 = 65_536;
/// Per-layer arrays are kept, vocabularies are only counted.
const MAX_KEPT: u64 = 2048;
/// ggml allows 64 bytes; some tools write longer names.
const MAX_NAME: u64 = 256;
/// Arrays of arrays are legal and used by nobody.
const DEEPEST: u32 = 4;

/// Why a header cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// The bytes end within the header: hand over more of the file.
    More,
    /// It is none, or a broken one.
    Bad(String),
}

/// A value of the metadata, as far as memory depends on it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Whole number or truth value.
    Int(u64),
    /// Text, cut at some hundred bytes.
    Text(String),
    /// A short array of whole numbers or truth values.
    Ints(Vec<u64>),
    /// How many elements a longer array has, or one of other things.
    Count(u64),
}

/// One tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name, as `blk.0.attn_q.weight`.
    pub name: String,
    /// Elements of each dimension, the row first.
    pub shape: [u64; 4],
    /// Type.
    pub kind: GgmlType,
}

/// A header.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gguf {
    /// Metadata by key.
    pub keys: BTreeMap<String, Value>,
    /// Tensors in the order of the file.
    pub tensors: Vec<Tensor>,
}

impl Gguf {
    /// Reads the header from the beginning of a file.
    ///
    /// # Errors
    /// [`Trouble::More`] where the bytes end too early, [`Trouble::Bad`] where no longer beginning would help.
    pub fn read(bytes: &[u8]) -> Result<Self, Trouble> {
        let mut at = Cursor { bytes };
        if at.take(4)? != b"GGUF" {
            return Err(Trouble::Bad("it does not start with the GGUF magic".into()));
        }
        let version = at.u32()?;
        if !(2..=3).contains(&version) {
            // Version 1 had 32-bit counts and is read by no current build; a swapped one is of a big-endian machine.
            return Err(Trouble::Bad(format!("GGUF version {version} is not supported")));
        }
        let tensors = at.bounded(MAX_TENSORS, "tensors")?;
        let keys = at.bounded(MAX_KEYS, "metadata")?;
        let mut out = Self::default();
        for _ in 0..keys {
            let name = at.text(MAX_NAME)?;
            let kind = at.u32()?;
            if let Some(value) = at.value(kind, 0)? {
                out.keys.insert(name, value);
            }
        }
        for _ in 0..tensors {
            out.tensors.push(at.tensor()?);
        }
        Ok(out)
    }

    /// Adds the tensors of a further file of the same model.
    pub fn extend(&mut self, more: Self) {
        let room = (MAX_TENSORS as usize).saturating_sub(self.tensors.len());
        self.tensors.extend(more.tensors.into_iter().take(room));
    }

    /// A whole number.
    #[must_use]
    pub fn int(&self, key: &str) -> Option<u64> {
        match self.keys.get(key)? {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// A text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.keys.get(key)? {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }

    /// Files that the model is split into.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.int("split.count").unwrap_or(1).max(1)
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, n: u64) -> Result<&'a [u8], Trouble> {
        let n = usize::try_from(n).map_err(|_| Trouble::Bad("a length beyond memory".into()))?;
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or(Trouble::More)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn number(&mut self, width: u64) -> Result<u64, Trouble> {
        Ok(self.take(width)?.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn u32(&mut self) -> Result<u32, Trouble> {
        Ok(u32::try_from(self.number(4)?).unwrap_or(u32::MAX))
    }

    fn bounded(&mut self, most: u64, what: &str) -> Result<u64, Trouble> {
        let n = self.number(8)?;
        if n > most { Err(Trouble::Bad(format!("{n} {what} exceed any known model"))) } else { Ok(n) }
    }

    fn text(&mut self, most: u64) -> Result<String, Trouble> {
        let n = self.bounded(most, "bytes of a name")?;
        Ok(String::from_utf8_lossy(self.take(n)?).into_owned())
    }

    /// Bytes of a scalar; `None`: a text or an array.
    const fn width(kind: u32) -> Option<u64> {
        match kind {
            0 | 1 | 7 => Some(1),
            2 | 3 => Some(2),
            4..=6 => Some(4),
            10..=12 => Some(8),
            _ => None,
        }
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<Option<Value>, Trouble> {
        if let Some(width) = Self::width(kind) {
            let n = self.number(width)?;
            // Fractions say nothing about memory.
            return Ok((kind != 6 && kind != 12).then_some(Value::Int(n)));
        }
        match kind {
            8 => {
                let n = self.number(8)?;
                let text = self.take(n)?;
                let text = text.get(..MAX_NAME as usize).unwrap_or(text);
                Ok(Some(Value::Text(String::from_utf8_lossy(text).into_owned())))
            }
            9 => self.array(depth).map(Some),
            other => Err(Trouble::Bad(format!("value type {other} is unknown"))),
        }
    }

    fn array(&mut self, depth: u32) -> Result<Value, Trouble> {
        let kind = self.u32()?;
        let n = self.number(8)?;
        match Self::width(kind) {
            Some(width) if n <= MAX_KEPT && kind != 6 && kind != 12 => {
                (0..n).map(|_| self.number(width)).collect::<Result<_, _>>().map(Value::Ints)
            }
            Some(width) => {
                self.take(n.saturating_mul(width))?;
                Ok(Value::Count(n))
            }
            None if depth < DEEPEST => {
                // Each element takes bytes, so a count that is a lie ends with the bytes.
                for _ in 0..n {
                    self.value(kind, depth + 1)?;
                }
                Ok(Value::Count(n))
            }
            None => Err(Trouble::Bad("arrays within arrays".into())),
        }
    }

    fn tensor(&mut self) -> Result<Tensor, Trouble> {
        let name = self.text(MAX_NAME)?;
        let dims = self.u32()?;
        let mut shape = [1_u64; 4];
        if dims as usize > shape.len() {
            return Err(Trouble::Bad(format!("a tensor of {dims} dimensions")));
        }
        for side in shape.iter_mut().take(dims as usize) {
            *side = self.number(8)?;
        }
        let id = self.u32()?;
        self.number(8)?;
        let kind = GgmlType::by_id(id).ok_or_else(|| Trouble::Bad(format!("tensor type {id} is unknown")))?;
        Ok(Tensor { name, shape, kind })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Writes headers for tests.
    #[derive(Default)]
    pub(crate) struct Writer {
        keys: Vec<u8>,
        n_keys: u64,
        tensors: Vec<u8>,
        n_tensors: u64,
    }

    fn put(out: &mut Vec<u8>, text: &str) {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    }

    impl Writer {
        pub(crate) fn int(mut self, key: &str, n: u32) -> Self {
            put(&mut self.keys, key);
            self.keys.extend(4_u32.to_le_bytes());
            self.keys.extend(n.to_le_bytes());
            self.n_keys += 1;
            self
        }

        pub(crate) fn text(mut self, key: &str, text: &str) -> Self {
            put(&mut self.keys, key);
            self.keys.extend(8_u32.to_le_bytes());
            put(&mut self.keys, text);
            self.n_keys += 1;
            self
        }

        pub(crate) fn texts(mut self, key: &str, n: u64) -> Self {
            put(&mut self.keys, key);
            self.keys.extend(9_u32.to_le_bytes());
            self.keys.extend(8_u32.to_le_bytes());
            self.keys.extend(n.to_le_bytes());
            (0..n).for_each(|i| put(&mut self.keys, &i.to_string()));
            self.n_keys += 1;
            self
        }

        pub(crate) fn tensor(mut self, name: &str, shape: &[u64], kind: u32) -> Self {
            put(&mut self.tensors, name);
            self.tensors.extend((shape.len() as u32).to_le_bytes());
            shape.iter().for_each(|n| self.tensors.extend(n.to_le_bytes()));
            self.tensors.extend(kind.to_le_bytes());
            self.tensors.extend(0_u64.to_le_bytes());
            self.n_tensors += 1;
            self
        }

        pub(crate) fn bytes(&self) -> Vec<u8> {
            let mut out = b"GGUF".to_vec();
            out.extend(3_u32.to_le_bytes());
            out.extend(self.n_tensors.to_le_bytes());
            out.extend(self.n_keys.to_le_bytes());
            out.extend(&self.keys);
            out.extend(&self.tensors);
            out
        }
    }

    fn sample() -> Vec<u8> {
        Writer::default()
            .text("general.architecture", "llama")
            .int("llama.block_count", 2)
            .texts("tokenizer.ggml.tokens", 300)
            .tensor("token_embd.weight", &[64, 300], 8)
            .tensor("output_norm.weight", &[64], 0)
            .bytes()
    }

    #[test]
    fn metadata_and_tensors_are_read() {
        let g = Gguf::read(&sample()).unwrap();
        assert_eq!(g.text("general.architecture"), Some("llama"));
        assert_eq!(g.int("llama.block_count"), Some(2));
        assert_eq!(g.keys["tokenizer.ggml.tokens"], Value::Count(300));
        assert_eq!(g.tensors[0].shape, [64, 300, 1, 1]);
        assert_eq!(g.tensors[0].kind.name, "q8_0");
        assert_eq!(g.files(), 1);
    }

    #[test]
    fn every_beginning_asks_for_more() {
        let all = sample();
        for n in 0..all.len() {
            assert_eq!(Gguf::read(&all[..n]), Err(Trouble::More), "{n}");
        }
    }

    #[test]
    fn a_changed_byte_never_breaks_the_reader() {
        let all = sample();
        for at in 0..all.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = all.clone();
                bytes[at] = value;
                // Any answer is good; it must come without a panic and without memory that the bytes do not back.
                if let Ok(g) = Gguf::read(&bytes) {
                    assert!(g.tensors.len() <= bytes.len());
                }
            }
        }
    }

    #[test]
    fn counts_are_not_believed() {
        let mut bytes = sample();
        bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(matches!(Gguf::read(&bytes), Err(Trouble::Bad(_))));
        let mut array = Writer::default();
        put(&mut array.keys, "a");
        array.keys.extend(9_u32.to_le_bytes());
        array.keys.extend(4_u32.to_le_bytes());
        array.keys.extend(u64::MAX.to_le_bytes());
        array.n_keys = 1;
        assert!(Gguf::read(&array.bytes()).is_err());
        assert!(matches!(Gguf::read(b"GGML1234"), Err(Trouble::Bad(_))));
    }
}
