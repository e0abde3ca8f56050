//! Boot image references in manifests.
//!
//! ```text
//! YAML text ──tree::documents──▶ Node ─┐
//! live JSON ──Node::from_json──▶ Node ─┴─Inventory::add──▶ (joins across objects) ──Inventory::finish──▶ Slots
//!                                                                                        │
//! YAML text ◀──────────────────────────edit::apply◀────────── new values at byte ranges ◀┘
//! ```
//!
//! A [`Slot`] is the place in one machine set where the reference stands. Only the bytes of the reference are ever
//! rewritten; nothing that is not ours is serialised again. The crate does no I/O.

pub mod edit;
mod inventory;
mod kinds;
mod platforms;
mod slot;
pub mod tree;

pub use inventory::{ClusterFacts, Inventory};
pub use slot::{
    ApiAuthority, AzureImage, DeclaredArchitecture, Field, ObjectId, Owner, Platform, Reference, Role, Slot,
    SlotKind, Strategy, Template,
};
