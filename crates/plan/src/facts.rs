//! Facts that no manifest holds.

use std::collections::BTreeMap;

use machines::{ClusterFacts, Platform};
use metadata::Architecture;

/// The architecture of a cluster's machines, where sets do not say their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterArchitecture {
    /// All machines have this one.
    Single(Architecture),
    /// Machines differ: each set must tell its own.
    Multi,
}

/// What the caller knows about the cluster beyond the manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The architecture of the cluster.
    pub architecture: Option<ClusterArchitecture>,
    /// The infrastructure name, by which images that the installer made are recognised.
    pub infrastructure_name: Option<String>,
    /// The region of sets that name none.
    pub region: Option<String>,
    /// The names under which the release's image lies in the stores, by platform.
    pub image_names: BTreeMap<Platform, String>,
}

impl Facts {
    /// Fills what is not given from objects of the cluster's own configuration.
    pub fn complete(&mut self, cluster: &ClusterFacts) {
        if self.infrastructure_name.is_none() {
            self.infrastructure_name.clone_from(&cluster.infrastructure_name);
        }
        if self.region.is_none() {
            self.region.clone_from(&cluster.region);
        }
        if self.architecture.is_none() && cluster.multi_architecture {
            self.architecture = Some(ClusterArchitecture::Multi);
        }
    }
}
