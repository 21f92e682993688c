//! A capture as one file: `.tar.zst` with a manifest, or a folder's worth of files.

pub mod artifact;
pub mod manifest;
mod pack;
mod unpack;

pub use pack::pack;
pub use unpack::unpack;
