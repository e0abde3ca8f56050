//! Which objects hold slots, and what is read from each.

pub(crate) mod cluster_api;
pub(crate) mod machine_api;
pub(crate) mod metal3;

use std::sync::Arc;

use metadata::Architecture;

use crate::slot::{ApiAuthority, DeclaredArchitecture, ObjectId, Owner, Slot, SlotKind, Strategy};
use crate::tree::{Node, Writing};

/// One object on its way into the inventory.
pub(crate) struct Object<'a> {
    pub(crate) node: &'a Node,
    pub(crate) writing: &'a Writing,
    pub(crate) file: Option<&'a Arc<str>>,
    pub(crate) document: usize,
    /// The document's bytes, where the object is the whole document.
    pub(crate) whole: bool,
}

impl Object<'_> {
    pub(crate) fn kind(&self) -> &str {
        self.node.text_at(&["kind"]).unwrap_or_default()
    }

    pub(crate) fn api_version(&self) -> &str {
        self.node.text_at(&["apiVersion"]).unwrap_or_default()
    }

    /// The API group, empty for the core group.
    pub(crate) fn group(&self) -> &str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The object's identity, with the place of a node in it.
    pub(crate) fn id(&self, at: Option<&Node>) -> ObjectId {
        let text = |path: &[&str]| self.node.text_at(path).unwrap_or_default().to_owned();
        let place = at.and_then(|n| n.place.as_ref()).or(self.node.place.as_ref());
        ObjectId {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
            file: self.file.cloned(),
            document: self.document,
            line: place.map_or(0, |p| p.line),
            column: place.map_or(0, |p| p.column),
        }
    }

    /// The node at a JSON pointer of the object.
    pub(crate) fn at_pointer(&self, pointer: &str) -> Option<&Node> {
        pointer.split('/').skip(1).try_fold(self.node, |node, key| match key.parse::<usize>() {
            Ok(n) if !node.items().is_empty() => node.items().get(n).map(|item| &**item),
            _ => node.get(&key.replace("~1", "/").replace("~0", "~")),
        })
    }

    pub(crate) fn owners(&self) -> Vec<Owner> {
        let owners = self.node.at(&["metadata", "ownerReferences"]).map(Node::items).unwrap_or_default();
        let text = |owner: &Node, key: &str| owner.text_at(&[key]).unwrap_or("unnamed").to_owned();
        owners.iter().map(|o| Owner { kind: text(o, "kind"), name: text(o, "name") }).collect()
    }

    /// Cluster API leaves what is paused alone; also the copy of a set for which the other API is authoritative.
    pub(crate) fn is_paused(&self) -> bool {
        self.node.at(&["metadata", "annotations"]).and_then(|a| a.get("cluster.x-k8s.io/paused")).is_some()
            || self.node.at(&["spec", "paused"]).is_some_and(Node::is_true)
    }

    pub(crate) fn labels(&self) -> Vec<(String, String)> {
        let labels = self.node.at(&["metadata", "labels"]).map(Node::entries).unwrap_or_default();
        labels.iter().map(|e| (e.key.clone(), e.value.text().unwrap_or_default().to_owned())).collect()
    }

    /// The OS stream by label (machine-config-operator `pkg/controller/bootimage`).
    pub(crate) fn os_stream(&self) -> Option<String> {
        self.node
            .text_at(&["metadata", "labels", "machineconfiguration.openshift.io/osstream"])
            .map(str::to_owned)
    }

    /// The architecture in the annotation that the cluster autoscaler scales from zero by: `key=value` pairs with
    /// commas between them (OCPBUGS-60119).
    pub(crate) fn declared_architecture(&self) -> DeclaredArchitecture {
        const ANNOTATION: &str = "capacity.cluster-autoscaler.kubernetes.io/labels";
        let text = self.node.text_at(&["metadata", "annotations", ANNOTATION]).unwrap_or_default();
        let mut pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        match pairs.find(|(key, _)| key.trim() == "kubernetes.io/arch").map(|(_, value)| value.trim()) {
            Some(name) => match Architecture::known(name) {
                Some(architecture) => DeclaredArchitecture::Declared(architecture),
                None => DeclaredArchitecture::Invalid(name.to_owned()),
            },
            None => DeclaredArchitecture::Absent,
        }
    }

    /// A slot with everything that does not depend on the kind.
    pub(crate) fn slot(&self, kind: SlotKind, spec: crate::platforms::Spec) -> Slot {
        let node = self.at_pointer(&spec.pointer).or_else(|| {
            // The field may be absent: then its nearest ancestor is the place.
            let mut pointer = spec.pointer.as_str();
            loop {
                pointer = pointer.rsplit_once('/')?.0;
                if let Some(node) = self.at_pointer(pointer) {
                    return Some(node);
                }
            }
        });
        Slot {
            object: self.id(node),
            kind,
            pointer: spec.pointer,
            platform: spec.platform,
            provider: String::new(),
            reference: spec.reference,
            fields: spec.fields,
            region: spec.region,
            architecture: self.declared_architecture(),
            os_stream: self.os_stream(),
            owners: self.owners(),
            windows: false,
            user_data_secret: None,
            security_type: spec.security_type,
            instance_type: spec.instance_type,
            authority: ApiAuthority::Own,
            paused: self.is_paused(),
            strategy: Strategy::NewMachinesOnly,
            labels: self.labels(),
            template: None,
            provisioned: false,
        }
    }
}
