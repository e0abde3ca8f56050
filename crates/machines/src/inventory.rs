//! All slots of a set of manifests, with what only several objects together tell.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::kinds::cluster_api::{self, Cluster, Clusters, Regions, User};
use crate::kinds::{Object, machine_api, metal3};
use crate::slot::Slot;
use crate::tree::{Document, Node, Writing};

/// Lists nest at most twice in practice.
const LIST_DEPTH: u8 = 4;

/// What objects of the cluster's configuration tell about it (a must-gather holds them). Sets hold what different
/// objects say: only what all of them agree on is a fact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// `Infrastructure` `status.infrastructureName`.
    pub infrastructure_names: BTreeSet<String>,
    /// `Infrastructure` `status.platformStatus`: the region of Machine API sets.
    pub regions: BTreeSet<String>,
    /// `Infrastructure` `status.platformStatus.azure.resourceGroupName`.
    pub resource_groups: BTreeSet<String>,
    /// The names of vSphere failure domains, and their `region-zone`: the installer's templates end in them.
    pub failure_domains: BTreeSet<String>,
    /// `ClusterVersion` `status.desired.architecture` says `Multi`.
    pub multi_architecture: bool,
    /// `ClusterVersion`: the release that the cluster is on its way to; empty for one that has arrived.
    pub updating_to: BTreeSet<String>,
    /// What the Machine Config Operator manages by `MachineConfiguration` `spec.managedBootImages`: resources, each with
    /// its mode.
    pub managed_boot_images: BTreeSet<(String, String)>,
}

/// Collects slots from documents, then joins what belongs together.
#[derive(Debug, Default)]
pub struct Inventory {
    slots: Vec<Slot>,
    users: Vec<User>,
    regions: Regions,
    clusters: Clusters,
    facts: ClusterFacts,
}

impl Inventory {
    /// An empty inventory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a text can hold anything that the inventory looks for; a cheap test before parsing.
    pub fn may_hold_slots(text: &str) -> bool {
        // Every kind that is read has one of these in its name.
        [
            "Machine",
            "BareMetalHost",
            "Provisioning",
            "ControlPlane",
            "AWSCluster",
            "GCPCluster",
            "Infrastructure",
            "ClusterVersion",
        ]
        .into_iter()
        .any(|word| text.contains(word))
    }

    /// Whether a text that does not parse was meant to hold a machine set, so that its error must be told.
    pub fn looks_like_machines(text: &str) -> bool {
        let kinds = ["MachineSet", "MachineDeployment", "BareMetalHost", "Provisioning"];
        let ends = ["MachineTemplate", "ControlPlane", "ControlPlaneMachineSet"];
        text.match_indices("kind").any(|(at, word)| {
            let line = text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
            // A key stands at the beginning of its line, or behind a mark of JSON.
            if !line.trim_end().is_empty() && !line.ends_with(['"', '\'', '{', ',', ' '])
                || line.contains('#')
            {
                return false;
            }
            let alone = line.trim_start_matches(['-', ' ', '\t']);
            if !alone.is_empty() && !alone.contains(['{', ',', '"', '\'']) {
                return false;
            }
            let rest = text.get(at + word.len()..).unwrap_or_default().trim_start_matches(['"', '\'']);
            let Some(value) = rest.trim_start().strip_prefix(':') else { return false };
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let name = value.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
            kinds.contains(&name) || ends.iter().any(|end| name.ends_with(end))
        })
    }

    /// Adds a document of a file.
    pub fn add(&mut self, file: &Arc<str>, document: &Document) {
        let object = Object {
            node: &document.root,
            writing: &document.writing,
            file: Some(file),
            document: document.index,
            whole: true,
        };
        self.visit(&object, 0);
    }

    /// Adds a live object.
    pub fn add_live(&mut self, object: &serde_json::Value) {
        let node = Node::from_json(object);
        self.visit(
            &Object { node: &node, writing: &Writing::default(), file: None, document: 0, whole: true },
            0,
        );
    }

    fn visit(&mut self, object: &Object<'_>, depth: u8) {
        let items = match object.node.items() {
            [] if object.kind().ends_with("List") => {
                object.node.get("items").map(Node::items).unwrap_or_default()
            }
            items => items,
        };
        if items.is_empty() || depth >= LIST_DEPTH {
            return self.visit_one(object);
        }
        for item in items {
            self.visit(&Object { node: item, whole: false, ..*object }, depth + 1);
        }
    }

    fn visit_one(&mut self, object: &Object<'_>) {
        self.users.extend(cluster_api::user(object));
        self.slots.extend(machine_api::slots(object));
        self.slots.extend(cluster_api::template(object));
        self.slots.extend(metal3::slot(object));
        self.read_facts(object);
    }

    fn read_facts(&mut self, object: &Object<'_>) {
        let text = |path: &[&str]| object.node.text_at(path).map(str::to_owned);
        let facts = &mut self.facts;
        match (object.group(), object.kind()) {
            ("config.openshift.io", "Infrastructure") => {
                facts.infrastructure_names.extend(text(&["status", "infrastructureName"]));
                let platforms = ["aws", "gcp", "powervs"].into_iter();
                facts
                    .regions
                    .extend(platforms.filter_map(|p| text(&["status", "platformStatus", p, "region"])));
                facts.resource_groups.extend(text(&[
                    "status",
                    "platformStatus",
                    "azure",
                    "resourceGroupName",
                ]));
                let domains = object.node.at(&["spec", "platformSpec", "vsphere", "failureDomains"]);
                for domain in domains.map(Node::items).unwrap_or_default() {
                    facts.failure_domains.extend(domain.text_at(&["name"]).map(str::to_owned));
                    let place = domain.text_at(&["region"]).zip(domain.text_at(&["zone"]));
                    facts.failure_domains.extend(place.map(|(region, zone)| format!("{region}-{zone}")));
                }
            }
            ("config.openshift.io", "ClusterVersion") => {
                let architecture = text(&["status", "desired", "architecture"]);
                facts.multi_architecture |= architecture.is_some_and(|a| a.eq_ignore_ascii_case("multi"));
                let latest = object.node.at(&["status", "history"]).and_then(|h| h.items().first().cloned());
                if let Some(latest) = latest {
                    let arrived = latest.text_at(&["state"]) == Some("Completed");
                    let version = latest.text_at(&["version"]).filter(|v| !v.is_empty());
                    let to = if arrived { "" } else { version.unwrap_or("another release") };
                    facts.updating_to.insert(to.to_owned());
                }
            }
            ("operator.openshift.io", "MachineConfiguration") => {
                let managers = object.node.at(&["spec", "managedBootImages", "machineManagers"]);
                for manager in managers.map(Node::items).unwrap_or_default() {
                    let mode = manager.text_at(&["selection", "mode"]).unwrap_or("None");
                    if let Some(resource) = manager.text_at(&["resource"]).filter(|_| mode != "None") {
                        facts.managed_boot_images.insert((resource.to_owned(), mode.to_owned()));
                    }
                }
            }
            ("cluster.x-k8s.io", "Cluster") => {
                let id = object.id(None);
                let infrastructure =
                    text(&["spec", "infrastructureRef", "name"]).unwrap_or_else(|| id.name.clone());
                let paused = object.is_paused();
                let cluster = Cluster { file: id.file, infrastructure, paused };
                self.clusters.entry((id.namespace, id.name)).or_default().push(cluster);
            }
            (group, "AWSCluster" | "GCPCluster") if group.ends_with("infrastructure.cluster.x-k8s.io") => {
                let id = object.id(None);
                if let Some(region) = text(&["spec", "region"]) {
                    self.regions.entry((id.namespace, id.name)).or_default().push((id.file, region));
                }
            }
            _ => {}
        }
    }

    /// Takes over what another inventory collected, behind its own.
    pub fn absorb(&mut self, other: Self) {
        self.slots.extend(other.slots);
        self.users.extend(other.users);
        for (cluster, said) in other.regions {
            self.regions.entry(cluster).or_default().extend(said);
        }
        for (cluster, said) in other.clusters {
            self.clusters.entry(cluster).or_default().extend(said);
        }
        let (facts, more) = (&mut self.facts, other.facts);
        facts.infrastructure_names.extend(more.infrastructure_names);
        facts.regions.extend(more.regions);
        facts.resource_groups.extend(more.resource_groups);
        facts.failure_domains.extend(more.failure_domains);
        facts.managed_boot_images.extend(more.managed_boot_images);
        facts.multi_architecture |= more.multi_architecture;
        facts.updating_to.extend(more.updating_to);
    }

    /// How many objects were found so far that a plan may have to edit.
    pub fn len(&self) -> usize {
        self.slots.len() + self.users.len()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the cluster's own configuration told.
    pub fn cluster_facts(&self) -> &ClusterFacts {
        &self.facts
    }

    /// The slots, in the order of the manifests, each with what other objects tell about it.
    pub fn finish(self) -> Vec<Slot> {
        let Self { slots, users, regions, clusters, .. } = self;
        let (templates, mut all): (Vec<Slot>, Vec<Slot>) =
            slots.into_iter().partition(|s| s.template.is_some());
        all.extend(cluster_api::join(templates, users, &regions, &clusters));
        all
    }
}
