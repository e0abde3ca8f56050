//! Metal3: `BareMetalHost` and the cluster's `Provisioning` (metal3-io/baremetal-operator, openshift/api).

use super::Object;
use crate::platforms::{self, At, Spec};
use crate::slot::{Platform, Reference, Role, Slot, SlotKind};

/// The slot of a host or of the provisioning configuration.
pub(crate) fn slot(object: &Object<'_>) -> Option<Slot> {
    if object.group() != "metal3.io" {
        return None;
    }
    let node = object.node.get("spec")?;
    let at = At { node, pointer: "/spec", writing: object.writing };
    match object.kind() {
        "BareMetalHost" => {
            let spec = platforms::image_url(at)?;
            // A host that names an image is being installed from it, or was, unless its status says otherwise.
            let state = object.node.text_at(&["status", "provisioning", "state"]);
            let free = ["registering", "inspecting", "preparing", "ready", "available"];
            let provisioned = !state.is_some_and(|state| free.contains(&state));
            Some(Slot {
                provider: object.kind().to_owned(),
                provisioned,
                ..object.slot(SlotKind::Host, spec)
            })
        }
        "Provisioning" => {
            let field = at.field(Role::Image, "provisioningOSDownloadURL");
            // Clusters of 4.10 and later leave it empty and install what the release carries.
            let (reference, fields) = match Reference::of_text(field.value.as_deref()) {
                Reference::Absent => (Reference::InRelease, Vec::new()),
                reference => (reference, vec![field.clone()]),
            };
            let spec = Spec {
                platform: Platform::BareMetal,
                reference,
                pointer: field.pointer,
                fields,
                region: None,
                security_type: None,
                instance_type: None,
            };
            Some(Slot { provider: object.kind().to_owned(), ..object.slot(SlotKind::Provisioning, spec) })
        }
        _ => None,
    }
}
