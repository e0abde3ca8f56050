//! Cluster API: immutable infrastructure templates, and the objects that make machines from them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::Object;
use crate::platforms::{self, At};
use crate::slot::{
    DeclaredArchitecture, Field, Owner, Platform, Reference, Role, Slot, SlotKind, Strategy, Template,
};

/// The label that a topology puts on what it manages.
const TOPOLOGY: &str = "topology.cluster.x-k8s.io/owned";

/// Where an object names the template of its machines: MachineDeployment and MachineSet; control planes up to v1beta1
/// and since v1beta2; and kinds of other providers.
const REFERENCES: [&[&str]; 4] = [
    &["spec", "template", "spec", "infrastructureRef"],
    &["spec", "machineTemplate", "infrastructureRef"],
    &["spec", "machineTemplate", "spec", "infrastructureRef"],
    &["spec", "infrastructureTemplate"],
];

/// A template as a machine set names it: namespace, kind, name.
type TemplateKey = (String, String, String);

/// The regions of clusters: by namespace and name, each with the file that says so.
pub(crate) type Regions = HashMap<(String, String), Vec<(Option<Arc<str>>, String)>>;

/// Clusters by namespace and name.
pub(crate) type Clusters = HashMap<(String, String), Vec<Cluster>>;

/// What a Cluster tells.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    pub(crate) file: Option<Arc<str>>,
    /// The name of its infrastructure object.
    pub(crate) infrastructure: String,
    pub(crate) paused: bool,
}

/// A machine set that makes machines from a template.
#[derive(Debug, Clone)]
pub(crate) struct User {
    template: TemplateKey,
    /// The set's own slot, without what the template tells.
    slot: Slot,
    repoint: Field,
    topology: bool,
    cluster: Option<String>,
}

/// The slot of an infrastructure template, before it is known who uses it.
pub(crate) fn template(object: &Object<'_>) -> Option<Slot> {
    if !object.group().ends_with("infrastructure.cluster.x-k8s.io") {
        return None;
    }
    let node = object.node.at(&["spec", "template", "spec"])?;
    let at = At { node, pointer: "/spec/template/spec", writing: object.writing };
    let spec = platforms::cluster_api(object.kind(), at)?;
    let metadata = At { node: object.node.get("metadata")?, pointer: "/metadata", writing: object.writing };
    let slot = object.slot(SlotKind::Template, spec);
    let template = Template {
        id: slot.object.clone(),
        pointer: slot.pointer.clone(),
        object: object.node.to_json()?,
        name: metadata.field(Role::Image, "name"),
        document: object.writing.copy.clone().filter(|_| object.whole),
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
pub(crate) fn user(object: &Object<'_>) -> Option<User> {
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
    let text = |path: &[&str]| object.node.text_at(path).map(str::to_owned);
    let id = object.id(reference.get("name"));
    let namespace = reference.text_at(&["namespace"]).map_or_else(|| id.namespace.clone(), str::to_owned);
    let (kind, name) = (reference.text_at(&["kind"])?.to_owned(), reference.text_at(&["name"])?.to_owned());
    let platform = platforms::of_template(&kind).unwrap_or(Platform::Unknown);
    let at = At { node: reference, pointer: &format!("/{}", path.join("/")), writing: object.writing };
    let repoint = at.field(Role::Image, "name");
    let spec = platforms::Spec::unresolved(platform, repoint.pointer.clone());
    let slot = Slot {
        object: id,
        provider: kind.clone(),
        strategy,
        owners: owners(object),
        user_data_secret: text(&["spec", "template", "spec", "bootstrap", "dataSecretName"]),
        ..object.slot(SlotKind::Template, spec)
    };
    Some(User {
        template: (namespace, kind, name),
        slot,
        repoint,
        topology: object.labels().iter().any(|(key, _)| key == TOPOLOGY),
        cluster: text(&["spec", "clusterName"]),
    })
}

/// Gives each machine set the image of the template that it names. Of several templates of one name the nearest counts,
/// by file and folder: trees hold many clusters that name their templates alike. A template that no set names keeps a
/// slot of its own.
pub(crate) fn join(
    templates: Vec<Slot>,
    users: Vec<User>,
    regions: &Regions,
    clusters: &Clusters,
) -> Vec<Slot> {
    let mut by_key: HashMap<TemplateKey, Vec<usize>> = HashMap::new();
    for (n, slot) in templates.iter().enumerate() {
        let id = &slot.object;
        by_key.entry((id.namespace.clone(), id.kind.clone(), id.name.clone())).or_default().push(n);
    }
    let mut used = vec![false; templates.len()];
    let mut joined: Vec<Slot> = Vec::new();
    // A template in another folder belongs to the cluster whose sets stand there.
    let homes: Vec<(Option<Arc<str>>, Option<String>, TemplateKey)> =
        users.iter().map(|u| (u.slot.object.file.clone(), u.cluster.clone(), u.template.clone())).collect();
    for user in users {
        let candidates = by_key.get(&user.template).map(Vec::as_slice).unwrap_or_default();
        let candidates = candidates.iter().filter_map(|n| Some((*n, templates.get(*n)?)));
        let found = nearest(
            user.slot.object.file.as_ref(),
            candidates.map(|(n, t)| (t.object.file.as_ref(), (n, t))),
        );
        for (n, _) in &found {
            if let Some(used) = used.get_mut(*n) {
                *used = true;
            }
        }
        let (_, kind, name) = &user.template;
        let taken = |template: &Slot| {
            let folder = |file: &Option<Arc<str>>| {
                file.as_ref().and_then(|f| Path::new(&**f).parent().map(Path::to_path_buf))
            };
            let home = folder(&template.object.file);
            let own = folder(&user.slot.object.file);
            own != home
                && homes.iter().any(|(file, cluster, key)| {
                    *key == user.template && folder(file) == home && *cluster != user.cluster
                })
        };
        joined.push(match found.as_slice() {
            [(_, template)] if taken(template) => {
                unresolved(format!("{kind} {name} is that of another cluster"), user)
            }
            [(_, template)] => with_template(user, template, regions, clusters),
            [] => unresolved(format!("{kind} {name} is not in the input"), user),
            several => unresolved(format!("{} of the input are called {kind} {name}", several.len()), user),
        });
    }
    joined.extend(templates.into_iter().zip(used).filter(|(_, used)| !used).map(|(slot, _)| slot));
    joined
}

fn unresolved(sentence: String, user: User) -> Slot {
    Slot { reference: Reference::Unresolved(sentence), ..user.slot }
}

fn with_template(user: User, template: &Slot, regions: &Regions, clusters: &Clusters) -> Slot {
    let User { slot, repoint, topology, cluster, .. } = user;
    let id = &template.object;
    let architecture = match slot.architecture {
        DeclaredArchitecture::Absent => template.architecture.clone(),
        declared => declared,
    };
    let regional = matches!(template.platform, Platform::Aws | Platform::Gcp);
    let key = cluster.map(|name| (id.namespace.clone(), name));
    let own = key.as_ref().and_then(|key| clusters.get(key)).map(Vec::as_slice).unwrap_or_default();
    let own = nearest(id.file.as_ref(), own.iter().map(|c| (c.file.as_ref(), c)));
    let cluster_paused = own.iter().any(|c| c.paused);
    // The infrastructure object mostly has the cluster's name, and need not.
    let infrastructure = own.first().map(|c| c.infrastructure.clone());
    let place = key.filter(|_| regional).map(|(namespace, name)| (namespace, infrastructure.unwrap_or(name)));
    let said = place.and_then(|place| regions.get(&place)).map(Vec::as_slice).unwrap_or_default();
    let said = nearest(id.file.as_ref(), said.iter().map(|(file, region)| (file.as_ref(), region)));
    let region = said.first().filter(|first| said.iter().all(|other| other == *first)).map(|r| (*r).clone());
    Slot {
        platform: template.platform,
        provider: template.provider.clone(),
        reference: template.reference.clone(),
        fields: template.fields.clone(),
        region: template.region.clone().or(region),
        architecture,
        os_stream: slot.os_stream.or_else(|| template.os_stream.clone()),
        owners: slot.owners.into_iter().chain(template.owners.iter().cloned()).collect(),
        security_type: template.security_type.clone(),
        instance_type: template.instance_type.clone(),
        paused: slot.paused || template.paused || cluster_paused,
        template: template
            .template
            .as_ref()
            .map(|t| Box::new(Template { repoint: Some(repoint), topology, ..(**t).clone() })),
        ..slot
    }
}

/// Of several candidates those that share the longest way with a file: the file itself, its folder, the folder above.
fn nearest<'a, T>(
    from: Option<&Arc<str>>,
    candidates: impl Iterator<Item = (Option<&'a Arc<str>>, T)>,
) -> Vec<T> {
    let way = |file: Option<&Arc<str>>| match (from, file) {
        (Some(from), Some(file)) => {
            let both = Path::new(&**from).components().zip(Path::new(&**file).components());
            both.take_while(|(a, b)| a == b).count() + usize::from(from == file)
        }
        _ => 0,
    };
    let measured: Vec<(usize, T)> = candidates.map(|(file, item)| (way(file), item)).collect();
    let best = measured.iter().map(|(way, _)| *way).max();
    measured.into_iter().filter(|(way, _)| Some(*way) == best).map(|(_, item)| item).collect()
}

/// A Cluster among the owners is how Cluster API ties an object to its cluster, no controller's claim.
fn owners(object: &Object<'_>) -> Vec<Owner> {
    object.owners().into_iter().filter(|o| o.kind != "Cluster").collect()
}
