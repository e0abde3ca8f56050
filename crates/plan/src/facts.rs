//! Facts that no manifest holds.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The region of the cluster itself: of its Machine API sets, not of clusters that it manages.
    pub own_region: Option<String>,
    /// The names under which the release's image lies in the stores, by platform.
    pub image_names: BTreeMap<Platform, String>,
    /// Azure: the resource group of the cluster, where it is not `NAME-rg`.
    pub resource_group: Option<String>,
    /// vSphere: how templates that the installer made may end.
    pub failure_domains: BTreeSet<String>,
    /// The release that the cluster is on its way to.
    pub updating_to: Option<String>,
    /// What the Machine Config Operator manages itself: resources, each with its mode.
    pub managed_boot_images: BTreeSet<(String, String)>,
}

impl Facts {
    /// Fills what is not given from objects of the cluster's own configuration. Objects that contradict each other tell
    /// nothing.
    pub fn complete(&mut self, cluster: &ClusterFacts) {
        let agreed = |said: &BTreeSet<String>| said.first().filter(|_| said.len() == 1).cloned();
        if self.infrastructure_name.is_none() {
            self.infrastructure_name = agreed(&cluster.infrastructure_names);
        }
        self.own_region = agreed(&cluster.regions);
        self.resource_group = agreed(&cluster.resource_groups);
        self.failure_domains.clone_from(&cluster.failure_domains);
        // Of several clusters in one input, one on its way does not stop the others.
        self.updating_to = agreed(&cluster.updating_to).filter(|version| !version.is_empty());
        self.managed_boot_images.clone_from(&cluster.managed_boot_images);
        if self.architecture.is_none() && cluster.multi_architecture {
            self.architecture = Some(ClusterArchitecture::Multi);
        }
    }
}
