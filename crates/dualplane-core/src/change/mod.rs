//! Changes of a live object, as values: which patch, what it changes, who would revert it, and how to undo it.
//!
//! Nothing here talks to a cluster. The adapter reads and writes; what is shown, recorded and undone is computed here, so
//! that it can be tested without one.

mod diff;
mod document;
mod fit;
mod inverse;
mod managed;
mod merge;
mod on_object;
mod path;
mod progress;
mod record;
mod rollout;
mod setting;
mod settings_file;
mod show;
mod yaml_text;

pub use diff::{Edit, edits, still};
pub use document::{Document, Offer, Subject, Whole, read};
pub use fit::{Misfit, Role, fit, placeholder, template_paths};
pub use inverse::{Differs, Inverse, Policy, inverse};
pub use managed::{Manager, applied_by_hand, managers};
pub use merge::{merge_patch, strategic};
pub use on_object::{Made, NotOnObject, config_maps, on_object};
pub use path::{Step, at};
pub use progress::{Progress, progress};
pub use record::{ObjectRef, Part, Record, SCHEMA, State};
pub use rollout::{rollout, touches_pods};
pub use setting::{Change, NotMade, Outcome, Resource, Setting, outcome, resources_hold};
pub use settings_file::{SettingsFile, settings_file};
pub use show::{Mark, diff_lines};
