//! All slots of a set of manifests, with what only several objects together tell.

use std::collections::HashMap;
use std::sync::Arc;

use crate::kinds::cluster_api::{self, TemplateKey, User};
use crate::kinds::{Object, machine_api, metal3};
use crate::slot::Slot;
use crate::tree::{Document, Node};

/// What objects of the cluster's configuration tell about it (a must-gather holds them).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterFacts {
    /// `Infrastructure` `status.infrastructureName`.
    pub infrastructure_name: Option<String>,
    /// `Infrastructure` `status.platformStatus`: the region.
    pub region: Option<String>,
    /// `ClusterVersion` `status.desired.architecture` says `Multi`.
    pub multi_architecture: bool,
}

/// Collects slots from documents, then joins what belongs together.
#[derive(Debug, Default)]
pub struct Inventory {
    slots: Vec<Slot>,
    users: HashMap<TemplateKey, Vec<User>>,
    regions: HashMap<(String, String), String>,
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
        let kind = |line: &str| {
            let line = line.trim_start_matches(['-', ' ', '\t', '{', '"']);
            let Some(value) = line.strip_prefix("kind").map(|rest| rest.trim_start_matches(['"', ' ', ':']))
            else {
                return false;
            };
            let value = value.trim_start_matches(['"', '\'']);
            ["MachineSet", "ControlPlaneMachineSet", "MachineDeployment", "BareMetalHost", "Provisioning"]
                .into_iter()
                .any(|k| value.starts_with(k))
                || value
                    .split(['"', '\'', ' ', ','])
                    .next()
                    .is_some_and(|word| word.ends_with("MachineTemplate"))
        };
        text.lines().any(kind)
    }

    /// Adds a document of a file.
    pub fn add(&mut self, file: &Arc<str>, document: &Document) {
        self.visit(&Object {
            node: &document.root,
            shared: &document.shared,
            file: Some(file),
            document: document.index,
            whole: true,
        });
    }

    /// Adds a live object.
    pub fn add_live(&mut self, object: &serde_json::Value) {
        let node = Node::from_json(object);
        self.visit(&Object { node: &node, shared: &[], file: None, document: 0, whole: true });
    }

    fn visit(&mut self, object: &Object<'_>) {
        let items = object.node.get("items").map(Node::items).unwrap_or_default();
        if object.kind().ends_with("List") && !items.is_empty() {
            for item in items {
                self.visit_one(&Object { node: item, whole: false, ..*object });
            }
        } else {
            self.visit_one(object);
        }
    }

    fn visit_one(&mut self, object: &Object<'_>) {
        if let Some((template, user)) = cluster_api::user(object) {
            self.users.entry(template).or_default().push(user);
            return;
        }
        self.slots.extend(machine_api::slots(object));
        self.slots.extend(cluster_api::template(object));
        self.slots.extend(metal3::slot(object));
        self.facts(object);
    }

    fn facts(&mut self, object: &Object<'_>) {
        let text = |path: &[&str]| object.node.text_at(path).map(str::to_owned);
        match (object.group(), object.kind()) {
            ("config.openshift.io", "Infrastructure") => {
                self.facts.infrastructure_name = text(&["status", "infrastructureName"]);
                self.facts.region = ["aws", "gcp", "powervs"]
                    .into_iter()
                    .find_map(|platform| text(&["status", "platformStatus", platform, "region"]));
            }
            ("config.openshift.io", "ClusterVersion") => {
                let architecture = text(&["status", "desired", "architecture"]);
                self.facts.multi_architecture = architecture.is_some_and(|a| a.eq_ignore_ascii_case("multi"));
            }
            (group, "AWSCluster" | "GCPCluster") if group.ends_with("infrastructure.cluster.x-k8s.io") => {
                let id = object.id(None);
                if let Some(region) = text(&["spec", "region"]) {
                    self.regions.insert((id.namespace, id.name), region);
                }
            }
            _ => {}
        }
    }

    /// Takes over what another inventory collected, behind its own.
    pub fn absorb(&mut self, other: Self) {
        self.slots.extend(other.slots);
        for (template, users) in other.users {
            self.users.entry(template).or_default().extend(users);
        }
        self.regions.extend(other.regions);
        let facts = other.facts;
        self.facts.infrastructure_name = self.facts.infrastructure_name.take().or(facts.infrastructure_name);
        self.facts.region = self.facts.region.take().or(facts.region);
        self.facts.multi_architecture |= facts.multi_architecture;
    }

    /// How many objects were found so far that a plan may have to edit.
    pub fn len(&self) -> usize {
        self.slots.len() + self.users.values().map(Vec::len).sum::<usize>()
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
        let Self { slots, users, regions, .. } = self;
        slots
            .into_iter()
            .flat_map(|slot| match slot.template {
                Some(_) => cluster_api::join(slot, &users, &regions),
                None => vec![slot],
            })
            .collect()
    }
}
