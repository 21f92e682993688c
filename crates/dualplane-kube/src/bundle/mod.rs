//! A capture as one file: `.tar.zst` with a manifest, or a folder's worth of files.

pub mod manifest;
mod pack;

pub use pack::pack;
