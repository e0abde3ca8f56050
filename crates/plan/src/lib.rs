//! Decides, purely: catalog, slots, policy, facts and the time go in; a [`Plan`] comes out.
//!
//! ```text
//! Catalog (release, known) ─┐
//! Slots ────────────────────┼─Planner::plan─▶ Plan: one Decision a slot ──▶ apply carries out, and chooses nothing
//! Policy, Facts, now ───────┘                  │
//!                                              ├─▶ check: a linter for plans
//!                                              └─▶ explain: the chain from metadata to decision
//! ```
//!
//! The crate does no I/O and reads no clock.

mod change;
mod check;
mod decide;
mod facts;
mod known;
mod output;
mod planner;
mod policy;
mod reason;
mod reconcile;
mod release;
mod skew;
mod trail;

pub use change::FileChange;
pub use check::{Broken, check};
pub use facts::{ClusterArchitecture, Facts};
pub use output::{
    API_VERSION, Action, ArtifactView, Decision, Finding, ObjectView, PatchOp, Plan, ReferenceView, Severity,
    SkewState, SkewSummary, SkewView, SlotView, Summary,
};
pub use planner::{Inputs, Planner};
pub use policy::{
    KnownBad, Mode, Pin, Policy, PolicyError, Requirement, Selector, SelectorOperator, SkewLimits,
    VersionLimit,
};
pub use reason::{FindingReason, Reason};
pub use trail::Step;
