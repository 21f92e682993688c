//! Tensor types of ggml: how many elements a block holds, and in how many bytes.

use crate::arith::mul;

/// A tensor type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GgmlType {
    /// Number in a GGUF file.
    pub id: u32,
    /// Name as llama.cpp prints it, in small letters.
    pub name: &'static str,
    /// Elements of a block.
    pub block: u64,
    /// Bytes of a block.
    pub bytes: u64,
}

const fn of(id: u32, name: &'static str, block: u64, bytes: u64) -> GgmlType {
    GgmlType { id, name, block, bytes }
}

/// All types that a file may hold. Source: ggml/include/ggml.h `ggml_type`, ggml/src/ggml-common.h for the blocks.
pub const TYPES: &[GgmlType] = &[
    of(0, "f32", 1, 4),
    of(1, "f16", 1, 2),
    of(2, "q4_0", 32, 18),
    of(3, "q4_1", 32, 20),
    of(6, "q5_0", 32, 22),
    of(7, "q5_1", 32, 24),
    of(8, "q8_0", 32, 34),
    of(9, "q8_1", 32, 36),
    of(10, "q2_k", 256, 84),
    of(11, "q3_k", 256, 110),
    of(12, "q4_k", 256, 144),
    of(13, "q5_k", 256, 176),
    of(14, "q6_k", 256, 210),
    of(15, "q8_k", 256, 292),
    of(16, "iq2_xxs", 256, 66),
    of(17, "iq2_xs", 256, 74),
    of(18, "iq3_xxs", 256, 98),
    of(19, "iq1_s", 256, 50),
    of(20, "iq4_nl", 32, 18),
    of(21, "iq3_s", 256, 110),
    of(22, "iq2_s", 256, 82),
    of(23, "iq4_xs", 256, 136),
    of(24, "i8", 1, 1),
    of(25, "i16", 1, 2),
    of(26, "i32", 1, 4),
    of(27, "i64", 1, 8),
    of(28, "f64", 1, 8),
    of(29, "iq1_m", 256, 56),
    of(30, "bf16", 1, 2),
    of(34, "tq1_0", 256, 54),
    of(35, "tq2_0", 256, 66),
    of(39, "mxfp4", 32, 17),
    of(40, "nvfp4", 64, 36),
];

/// Rows of quantised matrices are padded to so many elements on a CUDA device (ggml-cuda.cu `MATRIX_ROW_PADDING`).
const ROW_PADDING: u64 = 512;
/// Tensors of a CUDA buffer begin at multiples of so many bytes (`ggml_backend_cuda_buffer_type_get_alignment`).
const ALIGNMENT: u64 = 128;

impl GgmlType {
    /// The type with this number.
    #[must_use]
    pub fn by_id(id: u32) -> Option<Self> {
        TYPES.iter().find(|t| t.id == id).copied()
    }

    /// The type with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase();
        TYPES.iter().find(|t| t.name == name).copied()
    }

    /// Bytes of one row of so many elements.
    #[must_use]
    pub const fn row(self, elements: u64) -> u64 {
        elements.div_ceil(self.block).saturating_mul(self.bytes)
    }

    /// Bytes of a tensor in a file.
    #[must_use]
    pub fn stored(self, shape: [u64; 4]) -> u64 {
        let [row, rest @ ..] = shape;
        mul([self.row(row), mul(rest)])
    }

    /// Bytes that a CUDA buffer sets aside for a tensor: the last row of a quantised one is padded for the kernels, and
    /// each is aligned.
    #[must_use]
    pub fn on_cuda(self, shape: [u64; 4]) -> u64 {
        let over = shape[0] % ROW_PADDING;
        let padding = if self.block > 1 && over > 0 { self.row(ROW_PADDING - over) } else { 0 };
        self.stored(shape).saturating_add(padding).checked_next_multiple_of(ALIGNMENT).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_give_the_bits_that_are_known() {
        let bits = |name: &str| {
            let t = GgmlType::by_name(name).unwrap();
            t.bytes as f64 * 8.0 / t.block as f64
        };
        for (name, want) in
            [("Q4_0", 4.5), ("q8_0", 8.5), ("Q4_K", 4.5), ("q5_K", 5.5), ("q6_k", 6.5625), ("mxfp4", 4.25)]
        {
            assert!((bits(name) - want).abs() < 1e-9, "{name}");
        }
        // A printed `CPU buffer size = 281.81 MiB` is this embedding.
        let bytes = GgmlType::by_name("q4_0").unwrap().stored([4096, 128_256, 1, 1]);
        assert_eq!(format!("{:.2}", bytes as f64 / 1_048_576.0), "281.81");
    }

    #[test]
    fn rows_are_padded_on_the_device_only() {
        let t = GgmlType::by_name("q4_0").unwrap();
        assert_eq!(t.on_cuda([4096, 10, 1, 1]), t.stored([4096, 10, 1, 1]));
        assert_eq!(t.on_cuda([2880, 1, 1, 1]), (90_u64 * 18 + 6 * 18).next_multiple_of(128));
        assert_eq!(t.stored([u64::MAX, 2, 2, 2]), u64::MAX);
    }
}
