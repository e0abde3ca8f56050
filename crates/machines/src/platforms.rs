//! Where each platform's provider specification keeps its image (openshift/api `machine/v1*`, cluster-api providers).

use crate::edit::Site;
use crate::slot::{AzureImage, Field, Platform, Reference, Role};
use crate::tree::{Content, Node, Writing};

/// What a provider specification tells of its image. Pointers are absolute.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) platform: Platform,
    pub(crate) reference: Reference,
    pub(crate) pointer: String,
    pub(crate) fields: Vec<Field>,
    pub(crate) region: Option<String>,
    pub(crate) security_type: Option<String>,
    pub(crate) instance_type: Option<String>,
}

/// A mapping with its pointer, from which fields are taken.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) node: &'a Node,
    pub(crate) pointer: &'a str,
    pub(crate) writing: &'a Writing,
}

impl At<'_> {
    /// The field under a key, present or not.
    pub(crate) fn field(&self, role: Role, key: &str) -> Field {
        let pointer = format!("{}/{}", self.pointer, escape(key));
        if let Some(node) = self.node.get(key) {
            let site = Site::of(node, self.node, self.writing);
            return Field { role, pointer, value: node.text().map(str::to_owned), exists: true, site };
        }
        let site = Site::insert(self.node, key, self.writing);
        Field { role, pointer, value: None, exists: false, site }
    }

    fn text(&self, path: &[&str]) -> Option<String> {
        self.node.text_at(path).map(str::to_owned)
    }

    /// The same for a mapping below.
    fn below<R>(&self, key: &str, read: impl FnOnce(At<'_>) -> R) -> Option<R> {
        let node = self.node.get(key)?;
        let pointer = format!("{}/{}", self.pointer, escape(key));
        Some(read(At { node, pointer: &pointer, writing: self.writing }))
    }
}

/// Escapes a key for a JSON pointer (RFC 6901).
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The platform of a Machine API provider specification.
fn machine_api_platform(kind: &str) -> Platform {
    match kind {
        "AWSMachineProviderConfig" | "AWSMachineProviderSpec" => Platform::Aws,
        "AzureMachineProviderSpec" => Platform::Azure,
        "BareMetalMachineProviderSpec" => Platform::BareMetal,
        "GCPMachineProviderSpec" => Platform::Gcp,
        "IBMCloudMachineProviderSpec" => Platform::IbmCloud,
        "NutanixMachineProviderConfig" => Platform::Nutanix,
        "OpenstackProviderSpec" | "OpenStackProviderSpec" => Platform::OpenStack,
        "PowerVSMachineProviderConfig" => Platform::PowerVs,
        "VSphereMachineProviderSpec" => Platform::VSphere,
        _ => Platform::Unknown,
    }
}

/// Reads `providerSpec.value`. A machine has one boot disk; a specification with several gives one entry each.
pub(crate) fn machine_api(at: At<'_>) -> Vec<Spec> {
    let platform = machine_api_platform(at.node.text_at(&["kind"]).unwrap_or_default());
    match platform {
        Platform::Aws => vec![Spec {
            region: at.text(&["placement", "region"]),
            instance_type: at.text(&["instanceType"]),
            ..aws(at)
        }],
        Platform::Azure => vec![Spec {
            region: at.text(&["location"]),
            instance_type: at.text(&["vmSize"]),
            security_type: at.text(&["securityProfile", "settings", "securityType"]),
            ..azure(at)
        }],
        Platform::Gcp => gcp_disks(at),
        Platform::OpenStack => vec![openstack(at)],
        Platform::VSphere => vec![one(at, platform, "template")],
        Platform::IbmCloud => vec![Spec { region: at.text(&["region"]), ..one(at, platform, "image") }],
        Platform::Nutanix | Platform::PowerVs => vec![named(at, platform)],
        Platform::BareMetal => vec![bare_metal(at)],
        Platform::KubeVirt | Platform::Unknown => {
            vec![spec(Platform::Unknown, Reference::Absent, at.pointer.to_owned(), Vec::new())]
        }
    }
}

impl Spec {
    /// Of a machine set whose template is still to be found.
    pub(crate) fn unresolved(platform: Platform, pointer: String) -> Self {
        spec(platform, Reference::Absent, pointer, Vec::new())
    }
}

/// The platform of a Cluster API infrastructure template.
pub(crate) fn of_template(kind: &str) -> Option<Platform> {
    Some(match kind {
        "AWSMachineTemplate" => Platform::Aws,
        "AzureMachineTemplate" => Platform::Azure,
        "GCPMachineTemplate" => Platform::Gcp,
        "IBMPowerVSMachineTemplate" => Platform::PowerVs,
        "IBMVPCMachineTemplate" => Platform::IbmCloud,
        "KubevirtMachineTemplate" => Platform::KubeVirt,
        "Metal3MachineTemplate" => Platform::BareMetal,
        "NutanixMachineTemplate" => Platform::Nutanix,
        "OpenStackMachineTemplate" => Platform::OpenStack,
        "VSphereMachineTemplate" => Platform::VSphere,
        _ => return None,
    })
}

/// Reads `spec.template.spec` of a Cluster API infrastructure template.
pub(crate) fn cluster_api(kind: &str, at: At<'_>) -> Option<Spec> {
    let platform = of_template(kind)?;
    Some(match platform {
        Platform::Aws => Spec { instance_type: at.text(&["instanceType"]), ..aws(at) },
        Platform::Azure => cluster_api_azure(at),
        Platform::Gcp => Spec { instance_type: at.text(&["instanceType"]), ..one(at, platform, "image") },
        Platform::VSphere => one(at, platform, "template"),
        Platform::OpenStack | Platform::IbmCloud | Platform::Nutanix | Platform::PowerVs => {
            match at.node.get("image").map(|n| &n.content) {
                Some(Content::Scalar { .. }) => one(at, platform, "image"),
                _ => named(at, platform),
            }
        }
        Platform::KubeVirt => kubevirt(at),
        _ => bare_metal(at),
    })
}

fn spec(platform: Platform, reference: Reference, pointer: String, fields: Vec<Field>) -> Spec {
    Spec { platform, reference, pointer, fields, region: None, security_type: None, instance_type: None }
}

/// A reference in one field.
fn one(at: At<'_>, platform: Platform, key: &str) -> Spec {
    let field = at.field(Role::Image, key);
    let pointer = field.pointer.clone();
    spec(platform, Reference::of_text(field.value.as_deref()), pointer, vec![field])
}

/// `ami: {id}`; `filters` and `arn` are rules by which AWS finds the image.
fn aws(at: At<'_>) -> Spec {
    let ami = at.below("ami", |ami| {
        let id = ami.field(Role::Image, "id");
        let reference = match Reference::of_text(id.value.as_deref()) {
            Reference::Absent => {
                let arn = ami.text(&["arn"]);
                let filters = ami.node.get("filters").map(|_| "filters".to_owned());
                match arn.or(filters) {
                    Some(rule) => Reference::Lookup(rule),
                    None => Reference::Absent,
                }
            }
            reference => reference,
        };
        if matches!(reference, Reference::Lookup(_)) {
            spec(Platform::Aws, reference, ami.pointer.to_owned(), Vec::new())
        } else {
            spec(Platform::Aws, reference, id.pointer.clone(), vec![id])
        }
    });
    ami.unwrap_or_else(|| {
        spec(Platform::Aws, Reference::Absent, format!("{}/ami/id", at.pointer), Vec::new())
    })
}

/// Boot disks only: a data disk's image is none of ours (OCPBUGS-55830).
fn gcp_disks(at: At<'_>) -> Vec<Spec> {
    let region = at.text(&["region"]);
    let instance_type = at.text(&["machineType"]);
    let disks = at.node.get("disks").map(Node::items).unwrap_or_default();
    let boot = disks.iter().enumerate().filter(|(_, disk)| disk.get("boot").is_some_and(Node::is_true));
    let specs: Vec<Spec> = boot
        .map(|(n, disk)| {
            let pointer = format!("{}/disks/{n}", at.pointer);
            let disk = At { node: disk, pointer: &pointer, writing: at.writing };
            let (region, instance_type) = (region.clone(), instance_type.clone());
            Spec { region, instance_type, ..one(disk, Platform::Gcp, "image") }
        })
        .collect();
    if specs.is_empty() {
        let pointer = format!("{}/disks", at.pointer);
        return vec![Spec {
            region,
            instance_type,
            ..spec(Platform::Gcp, Reference::Absent, pointer, Vec::new())
        }];
    }
    specs
}

fn azure(at: At<'_>) -> Spec {
    let pointer = format!("{}/image", at.pointer);
    let image = at.below("image", |image| {
        let fields = vec![
            image.field(Role::Publisher, "publisher"),
            image.field(Role::Offer, "offer"),
            image.field(Role::Sku, "sku"),
            image.field(Role::Version, "version"),
            image.field(Role::ResourceId, "resourceID"),
            image.field(Role::ImageType, "type"),
        ];
        spec(Platform::Azure, azure_reference(&fields), pointer.clone(), fields)
    });
    image.unwrap_or_else(|| spec(Platform::Azure, Reference::Absent, pointer, Vec::new()))
}

fn azure_reference(fields: &[Field]) -> Reference {
    let text = |role: Role| {
        let field = fields.iter().find(|f| f.role == role);
        field.and_then(|f| f.value.clone()).unwrap_or_default()
    };
    let image = AzureImage {
        resource_id: text(Role::ResourceId),
        publisher: text(Role::Publisher),
        offer: text(Role::Offer),
        sku: text(Role::Sku),
        version: text(Role::Version),
        kind: text(Role::ImageType),
    };
    let all = [&image.resource_id, &image.publisher, &image.offer, &image.sku, &image.version];
    if let Some(placeholder) = all.iter().find(|t| t.contains("${")) {
        return Reference::Placeholder((*placeholder).clone());
    }
    if all.iter().any(|t| *t == "managed") {
        return Reference::Managed;
    }
    if image.text().is_none() { Reference::Absent } else { Reference::Azure(image) }
}

/// `image: {marketplace: {publisher, offer, sku, version}}`, or `id`, or a gallery.
fn cluster_api_azure(at: At<'_>) -> Spec {
    let pointer = format!("{}/image", at.pointer);
    let security = at.text(&["securityProfile", "securityType"]);
    let found = at.below("image", |image| {
        let marketplace = image.below("marketplace", |market| {
            let fields = vec![
                market.field(Role::Publisher, "publisher"),
                market.field(Role::Offer, "offer"),
                market.field(Role::Sku, "sku"),
                market.field(Role::Version, "version"),
            ];
            spec(Platform::Azure, azure_reference(&fields), market.pointer.to_owned(), fields)
        });
        marketplace.or_else(|| {
            let id = image.text(&["id"])?;
            let reference = match Reference::of_text(Some(&id)) {
                Reference::Value(resource_id) => {
                    Reference::Azure(AzureImage { resource_id, ..AzureImage::default() })
                }
                other => other,
            };
            Some(spec(Platform::Azure, reference, format!("{}/id", image.pointer), Vec::new()))
        })
    });
    let found =
        found.flatten().unwrap_or_else(|| spec(Platform::Azure, Reference::Absent, pointer, Vec::new()));
    Spec { security_type: security, instance_type: at.text(&["vmSize"]), ..found }
}

/// `image`, and in older objects `rootVolume.sourceUUID`, which repeats it or stands alone.
fn openstack(at: At<'_>) -> Spec {
    let image = at.field(Role::Image, "image");
    let source =
        at.below("rootVolume", |volume| volume.field(Role::Repeated, "sourceUUID")).filter(|f| f.exists);
    let empty = image.value.as_deref().unwrap_or_default().is_empty();
    let fields = match source {
        Some(source) if empty => vec![Field { role: Role::Image, ..source }],
        Some(source) if source.value == image.value => vec![image, source],
        _ => vec![image],
    };
    let (pointer, value) =
        fields.first().map_or_else(Default::default, |f| (f.pointer.clone(), f.value.clone()));
    spec(Platform::OpenStack, Reference::of_text(value.as_deref()), pointer, fields)
}

/// `image: {type: name|uuid, name|uuid}` (Nutanix, Power VS), `{id | filter: {name}}` (OpenStack), `{name | id}` (IBM).
/// An id is read, and is not a place where a name can be written.
fn named(at: At<'_>, platform: Platform) -> Spec {
    let pointer = format!("{}/image", at.pointer);
    let found = at.below("image", |image| {
        let filtered = image.below("filter", |filter| filter.field(Role::Image, "name")).filter(|f| f.exists);
        let by_name = filtered.or_else(|| Some(image.field(Role::Image, "name")).filter(|f| f.exists));
        if let Some(field) = by_name {
            let pointer = field.pointer.clone();
            return Some(spec(platform, Reference::of_text(field.value.as_deref()), pointer, vec![field]));
        }
        let by_id =
            ["uuid", "id", "regex"].iter().map(|key| image.field(Role::Image, key)).find(|f| f.exists)?;
        Some(spec(platform, Reference::of_text(by_id.value.as_deref()), by_id.pointer, Vec::new()))
    });
    found.flatten().unwrap_or_else(|| spec(platform, Reference::Absent, pointer, Vec::new()))
}

/// `customDeploy.method: install_coreos` installs what the release carries; `image: {url, checksum}` is older.
fn bare_metal(at: At<'_>) -> Spec {
    if let Some(method) = at.node.text_at(&["customDeploy", "method"]) {
        let pointer = format!("{}/customDeploy/method", at.pointer);
        let reference = match method {
            "install_coreos" => Reference::InRelease,
            other => Reference::Lookup(format!("customDeploy.method {other}")),
        };
        return spec(Platform::BareMetal, reference, pointer, Vec::new());
    }
    image_url(at).unwrap_or_else(|| {
        spec(Platform::BareMetal, Reference::Absent, format!("{}/image/url", at.pointer), Vec::new())
    })
}

/// `image: {url, checksum}` of bare metal hosts and templates.
pub(crate) fn image_url(at: At<'_>) -> Option<Spec> {
    at.below("image", |image| {
        let url = image.field(Role::Image, "url");
        let checksum = image.field(Role::Checksum, "checksum");
        let kind = image.field(Role::ChecksumType, "checksumType");
        let pointer = url.pointer.clone();
        let reference = Reference::of_text(url.value.as_deref());
        let fields =
            [url, checksum, kind].into_iter().filter(|f| f.role == Role::Image || f.exists).collect();
        spec(Platform::BareMetal, reference, pointer, fields)
    })
}

/// The container disk among the volumes of the virtual machine.
fn kubevirt(at: At<'_>) -> Spec {
    const PATH: [&str; 5] = ["virtualMachineTemplate", "spec", "template", "spec", "volumes"];
    let volumes = at.node.at(&PATH).map(Node::items).unwrap_or_default();
    let base = format!("{}/{}", at.pointer, PATH.join("/"));
    for (n, volume) in volumes.iter().enumerate() {
        if let Some(disk) = volume.get("containerDisk") {
            let pointer = format!("{base}/{n}/containerDisk");
            return one(
                At { node: disk, pointer: &pointer, writing: at.writing },
                Platform::KubeVirt,
                "image",
            );
        }
    }
    spec(Platform::KubeVirt, Reference::Absent, base, Vec::new())
}
