//! Release metadata of CoreOS boot images: every format that was ever published, read into one [`Catalog`].
//!
//! ```text
//! bytes ──Document::parse──▶ Document (the JSON, nothing lost) ──Catalog::add──▶ Catalog
//!                                                                                 ├─ identify
//!                                                                                 ├─ lint, diff
//!                                                                                 └─ published index
//! ```
//!
//! The crate does no I/O: callers bring bytes and a name for messages.

mod aleph;
mod architecture;
mod catalog;
mod diff;
mod document;
mod identify;
mod lint;
mod published;
mod reference;
mod version;

mod read;

pub use aleph::{Aleph, AlephError};
pub use architecture::Architecture;
pub use catalog::{Artifact, Catalog, Distribution, Image, Problem, Source, SourceId, platform};
pub use diff::{Change, ChangeKind, diff, package_changes};
pub use document::{Document, DocumentError, Format, Part};
pub use identify::{Identity, Match};
pub use lint::{Lint, LintRule, lint};
pub use published::{IndexError, read_index, write_index};
pub use reference::{ImageReference, MarketplaceImage};
pub use version::{OsVersion, Scheme, VersionError};
