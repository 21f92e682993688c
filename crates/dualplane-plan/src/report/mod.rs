//! Plans, fits and preflights as text, JSON, YAML, Markdown, SVG and blocks to paste.

mod page;
pub mod plan;
pub mod preflight;
