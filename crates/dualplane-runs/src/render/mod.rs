//! A document for people: text, Markdown, and a page of HTML with plots of both planes on one clock.

mod html;
mod markdown;
mod plot;
mod text;
mod words;

pub use html::html;
pub use markdown::markdown;
pub use text::text;
