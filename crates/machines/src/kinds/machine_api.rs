//! Machine API: `MachineSet`, `ControlPlaneMachineSet`, `Machine` (openshift/api `machine/v1beta1`, `machine/v1`).

use super::Object;
use crate::platforms::{self, At};
use crate::slot::{ApiAuthority, Slot, SlotKind, Strategy};

/// Where the parts of each kind stand.
struct Layout {
    kind: SlotKind,
    provider: &'static [&'static str],
    template_labels: &'static [&'static str],
}

const MACHINE_SET: Layout = Layout {
    kind: SlotKind::MachineSet,
    provider: &["spec", "template", "spec", "providerSpec", "value"],
    template_labels: &["spec", "template", "metadata", "labels"],
};
const CONTROL_PLANE: Layout = Layout {
    kind: SlotKind::ControlPlane,
    provider: &["spec", "template", "machines_v1beta1_machine_openshift_io", "spec", "providerSpec", "value"],
    template_labels: &["spec", "template", "machines_v1beta1_machine_openshift_io", "metadata", "labels"],
};
const MACHINE: Layout = Layout {
    kind: SlotKind::Machine,
    provider: &["spec", "providerSpec", "value"],
    template_labels: &["metadata", "labels"],
};

/// The slots of an object; none where it is not of this API.
pub(crate) fn slots(object: &Object<'_>) -> Vec<Slot> {
    // `cluster.k8s.io` is the group of the first clusters.
    if !matches!(object.group(), "machine.openshift.io" | "cluster.k8s.io") {
        return Vec::new();
    }
    let layout = match object.kind() {
        "MachineSet" => MACHINE_SET,
        "ControlPlaneMachineSet" => CONTROL_PLANE,
        "Machine" => MACHINE,
        _ => return Vec::new(),
    };
    let node = object.node;
    let Some(value) = node.at(layout.provider) else { return Vec::new() };
    let pointer = format!("/{}", layout.provider.join("/"));
    let windows = node
        .at(layout.template_labels)
        .and_then(|labels| labels.get("machine.openshift.io/os-id"))
        .and_then(crate::tree::Node::text)
        .is_some_and(|os| os.eq_ignore_ascii_case("windows"));
    let secret = value.text_at(&["userDataSecret", "name"]).or_else(|| value.text_at(&["userData", "name"]));
    // While both APIs hold the set, the spec asks and the status tells which of them counts.
    let authority =
        node.text_at(&["status", "authoritativeAPI"]).or_else(|| node.text_at(&["spec", "authoritativeAPI"]));
    let strategy = match layout.kind {
        SlotKind::ControlPlane if node.text_at(&["spec", "strategy", "type"]) == Some("OnDelete") => {
            Strategy::OnDelete
        }
        SlotKind::ControlPlane => Strategy::ReplacesMachines,
        _ => Strategy::NewMachinesOnly,
    };
    platforms::machine_api(At { node: value, pointer: &pointer, writing: object.writing })
        .into_iter()
        .map(|spec| Slot {
            provider: value.text_at(&["kind"]).unwrap_or("without kind").to_owned(),
            windows,
            user_data_secret: secret.map(str::to_owned),
            authority: if matches!(authority, Some("ClusterAPI" | "Migrating")) {
                ApiAuthority::Other
            } else {
                ApiAuthority::Own
            },
            strategy,
            ..object.slot(layout.kind, spec)
        })
        .collect()
}
