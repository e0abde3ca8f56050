//! Cluster API: immutable infrastructure templates, and the objects that make machines from them.

use std::collections::HashMap;

use super::Object;
use crate::platforms::{self, At};
use crate::slot::{
    DeclaredArchitecture, Field, ObjectId, Owner, Platform, Role, Slot, SlotKind, Strategy, Template,
};
use crate::tree::Content;

/// The label that a topology puts on what it manages.
const TOPOLOGY: &str = "topology.cluster.x-k8s.io/owned";

/// Where an object names the template of its machines: MachineDeployment and MachineSet; control planes up to v1beta1
/// and since v1beta2; and ClusterClass-like kinds.
const REFERENCES: [&[&str]; 4] = [
    &["spec", "template", "spec", "infrastructureRef"],
    &["spec", "machineTemplate", "infrastructureRef"],
    &["spec", "machineTemplate", "spec", "infrastructureRef"],
    &["spec", "infrastructureTemplate"],
];

/// A template as a machine set names it: namespace, kind, name.
pub(crate) type TemplateKey = (String, String, String);

/// A machine set that makes machines from a template.
#[derive(Debug, Clone)]
pub(crate) struct User {
    object: ObjectId,
    repoint: Field,
    strategy: Strategy,
    topology: bool,
    cluster: Option<String>,
    architecture: DeclaredArchitecture,
    os_stream: Option<String>,
    owners: Vec<Owner>,
    labels: Vec<(String, String)>,
    secret: Option<String>,
}

/// The slot of an infrastructure template, before it is known who uses it.
pub(crate) fn template(object: &Object<'_>) -> Option<Slot> {
    if !object.group().ends_with("infrastructure.cluster.x-k8s.io") {
        return None;
    }
    let node = object.node.at(&["spec", "template", "spec"])?;
    let at = At { node, pointer: "/spec/template/spec", shared: object.shared };
    let spec = platforms::cluster_api(object.kind(), at)?;
    let metadata = At { node: object.node.get("metadata")?, pointer: "/metadata", shared: object.shared };
    let block = matches!(object.node.content, Content::Mapping { flow: false, .. });
    let slot = object.slot(SlotKind::Template, spec);
    let template = Template {
        id: slot.object.clone(),
        pointer: slot.pointer.clone(),
        object: object.node.to_json()?,
        name: metadata.field(Role::Image, "name"),
        document: object.node.place.as_ref().filter(|_| object.whole && block).map(|p| p.range.clone()),
        repoint: None,
        topology: false,
    };
    Some(Slot {
        provider: object.kind().to_owned(),
        owners: owners(object),
        template: Some(Box::new(template)),
        ..slot
    })
}

/// The machine set that an object is, with the template that it makes machines from.
pub(crate) fn user(object: &Object<'_>) -> Option<(TemplateKey, User)> {
    if !object.group().ends_with("cluster.x-k8s.io") {
        return None;
    }
    let path = REFERENCES.into_iter().find(|path| object.node.at(path).is_some())?;
    let reference = object.node.at(path)?;
    // A MachineSet that belongs to a MachineDeployment follows it.
    if object.kind() == "MachineSet" && object.owners().iter().any(|o| o.kind == "MachineDeployment") {
        return None;
    }
    let on_delete = [&["spec", "strategy", "type"][..], &["spec", "rollout", "strategy", "type"]]
        .into_iter()
        .any(|path| object.node.text_at(path) == Some("OnDelete"));
    let strategy = match object.kind() {
        // Without a deployment above it, a MachineSet gives the new template to new machines alone.
        "MachineSet" => Strategy::NewMachinesOnly,
        _ if on_delete => Strategy::OnDelete,
        _ => Strategy::ReplacesMachines,
    };
    let id = object.id(reference.get("name"));
    let text = |path: &[&str]| object.node.text_at(path).map(str::to_owned);
    let key = (
        id.namespace.clone(),
        reference.text_at(&["kind"])?.to_owned(),
        reference.text_at(&["name"])?.to_owned(),
    );
    let at = At { node: reference, pointer: &format!("/{}", path.join("/")), shared: object.shared };
    let user = User {
        object: id,
        repoint: at.field(Role::Image, "name"),
        strategy,
        topology: object.labels().iter().any(|(key, _)| key == TOPOLOGY),
        cluster: text(&["spec", "clusterName"]),
        architecture: object.declared_architecture(),
        os_stream: object.os_stream(),
        owners: owners(object),
        labels: object.labels(),
        secret: text(&["spec", "template", "spec", "bootstrap", "dataSecretName"]),
    };
    Some((key, user))
}

/// Gives each machine set a slot of its own on the template that it names; a template that none names keeps one.
pub(crate) fn join(
    slot: Slot,
    users: &HashMap<TemplateKey, Vec<User>>,
    regions: &HashMap<(String, String), String>,
) -> Vec<Slot> {
    let id = &slot.object;
    let key = (id.namespace.clone(), id.kind.clone(), id.name.clone());
    let (Some(users), Some(template)) = (users.get(&key), &slot.template) else { return vec![slot] };
    users
        .iter()
        .map(|user| {
            let cluster = user.cluster.as_ref().map(|name| (id.namespace.clone(), name.clone()));
            let own_or = |own: DeclaredArchitecture| match own {
                DeclaredArchitecture::Absent => slot.architecture.clone(),
                declared => declared,
            };
            let regional = matches!(slot.platform, Platform::Aws | Platform::Gcp);
            let region = cluster.filter(|_| regional).and_then(|cluster| regions.get(&cluster).cloned());
            Slot {
                object: user.object.clone(),
                pointer: user.repoint.pointer.clone(),
                region: slot.region.clone().or(region),
                architecture: own_or(user.architecture.clone()),
                os_stream: user.os_stream.clone().or_else(|| slot.os_stream.clone()),
                owners: user.owners.iter().chain(&slot.owners).cloned().collect(),
                labels: user.labels.clone(),
                strategy: user.strategy,
                user_data_secret: user.secret.clone(),
                template: Some(Box::new(Template {
                    repoint: Some(user.repoint.clone()),
                    topology: user.topology,
                    ..(**template).clone()
                })),
                ..slot.clone()
            }
        })
        .collect()
}

/// A Cluster among the owners is how Cluster API ties an object to its cluster, no controller's claim.
fn owners(object: &Object<'_>) -> Vec<Owner> {
    object.owners().into_iter().filter(|o| o.kind != "Cluster").collect()
}
