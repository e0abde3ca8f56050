//! Every input by its SRC word, and the files that are written back. The room decides nothing.

mod digest;
mod git;
pub mod manifests;
mod metadata_files;
pub mod rewrite;
mod word;

pub use digest::Digest;
pub use metadata_files::{Loaded, load};
pub use word::{SourceError, Word};
