//! Slots in manifests of every kind, and edits of nothing but the reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;

use machines::edit::{self, Edit};
use machines::{DeclaredArchitecture, Inventory, Platform, Reference, Role, Slot, SlotKind, Strategy, tree};
use proptest::prelude::*;

fn slots(text: &str) -> Vec<Slot> {
    let file: Arc<str> = "m.yaml".into();
    let mut inventory = Inventory::new();
    tree::documents(text, |document| inventory.add(&file, &document.unwrap()));
    inventory.finish()
}

fn one(text: &str) -> Slot {
    let mut all = slots(text);
    assert_eq!(all.len(), 1, "{text}");
    all.remove(0)
}

/// Writes a value into the field of a role, and tells the new text.
fn written(text: &str, role: Role, value: &str) -> String {
    let slot = one(text);
    let field = slot.fields.iter().find(|f| f.role == role).unwrap();
    edit::apply(text, &[field.site.as_ref().expect("an editable field").write(value)]).unwrap()
}

fn machine_set(provider: &str) -> String {
    let mut text = "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata:\n  name: w\n  namespace: openshift-machine-api\nspec:\n  template:\n    spec:\n      providerSpec:\n        value:\n".to_owned();
    for line in provider.lines() {
        text.push_str("          ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[test]
fn every_platform_of_the_machine_api_is_found() {
    let cases = [
        (
            "kind: AWSMachineProviderConfig\nami: {id: ami-1}\nplacement: {region: us-east-1}",
            Platform::Aws,
            Some("ami-1"),
            "/ami/id",
        ),
        (
            "kind: GCPMachineProviderSpec\nregion: r\ndisks:\n- {boot: false, image: data}\n- {boot: true, image: projects/p/global/images/i}",
            Platform::Gcp,
            Some("projects/p/global/images/i"),
            "/disks/1/image",
        ),
        (
            "kind: AzureMachineProviderSpec\nimage: {publisher: a, offer: b, sku: c, version: d}",
            Platform::Azure,
            Some("a/b/c/d"),
            "/image",
        ),
        (
            "kind: AzureMachineProviderSpec\nimage: {publisher: '', resourceID: /resourceGroups/x}",
            Platform::Azure,
            Some("/resourceGroups/x"),
            "/image",
        ),
        ("kind: VSphereMachineProviderSpec\ntemplate: t", Platform::VSphere, Some("t"), "/template"),
        ("kind: OpenstackProviderSpec\nimage: i", Platform::OpenStack, Some("i"), "/image"),
        (
            "kind: OpenstackProviderSpec\nrootVolume: {sourceUUID: u}",
            Platform::OpenStack,
            Some("u"),
            "/rootVolume/sourceUUID",
        ),
        (
            "kind: NutanixMachineProviderConfig\nimage: {type: uuid, uuid: u}",
            Platform::Nutanix,
            Some("u"),
            "/image/uuid",
        ),
        (
            "kind: PowerVSMachineProviderConfig\nimage: {type: Name, name: n}",
            Platform::PowerVs,
            Some("n"),
            "/image/name",
        ),
        (
            "kind: IBMCloudMachineProviderSpec\nimage: i\nregion: us-south",
            Platform::IbmCloud,
            Some("i"),
            "/image",
        ),
        (
            "kind: BareMetalMachineProviderSpec\nimage: {url: u, checksum: c}",
            Platform::BareMetal,
            Some("u"),
            "/image/url",
        ),
        ("kind: SomethingElse\nimage: i", Platform::Unknown, None, ""),
    ];
    for (provider, platform, reference, pointer) in cases {
        let slot = one(&machine_set(provider));
        assert_eq!(slot.platform, platform, "{provider}");
        assert_eq!(slot.reference.text().as_deref(), reference, "{provider}");
        assert_eq!(slot.pointer, format!("/spec/template/spec/providerSpec/value{pointer}"), "{provider}");
    }
}

#[test]
fn references_that_name_no_image_are_kinds_of_their_own() {
    let cases = [
        (
            "kind: AWSMachineProviderConfig\nami: {filters: [{name: tag:Name}]}",
            Reference::Lookup("filters".into()),
        ),
        ("kind: AWSMachineProviderConfig\nami: {arn: 'arn:x'}", Reference::Lookup("arn:x".into())),
        ("kind: AWSMachineProviderConfig\nami: {id: managed}", Reference::Managed),
        (
            "kind: AWSMachineProviderConfig\nami: {id: '${AMI_ID:=x}'}",
            Reference::Placeholder("${AMI_ID:=x}".into()),
        ),
        ("kind: AWSMachineProviderConfig\nami: {id: null}", Reference::Absent),
        ("kind: AWSMachineProviderConfig", Reference::Absent),
        ("kind: GCPMachineProviderSpec\ndisks: [{boot: false, image: data}]", Reference::Absent),
        ("kind: BareMetalMachineProviderSpec\ncustomDeploy: {method: install_coreos}", Reference::InRelease),
    ];
    for (provider, reference) in cases {
        assert_eq!(one(&machine_set(provider)).reference, reference, "{provider}");
    }
}

#[test]
fn only_the_bytes_of_the_reference_change() {
    let base = machine_set(
        "# a comment\nkind: AWSMachineProviderConfig\nami:\n  id: ami-1   # why\nplacement: {region: us-east-1}",
    );
    let variants = [
        base.clone(),
        base.replace("ami-1 ", "\"ami-1\" "),
        base.replace("ami-1 ", "'ami-1' "),
        base.replace('\n', "\r\n"),
        format!("\u{feff}{base}"),
        format!("# größe\n---\nkind: Secret\n---\n{base}---\nkind: ConfigMap\n"),
        base.replace("ami:\n            id: ami-1   # why", "ami: {id: ami-1}"),
    ];
    for text in variants {
        assert_eq!(written(&text, Role::Image, "ami-2"), text.replace("ami-1", "ami-2"), "{text}");
    }
}

#[test]
fn json_is_read_and_edited_like_yaml() {
    let text = r#"{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "metadata": {"name": "a"},
   "spec": {"template": {"spec": {"providerSpec": {"value": {"kind": "AWSMachineProviderConfig", "ami": {"id": "ami-1"}}}}}}},
  {"apiVersion": "v1", "kind": "Pod"}]}"#;
    assert_eq!(written(text, Role::Image, "ami-2"), text.replace("ami-1", "ami-2"));
    let live: serde_json::Value = serde_json::from_str(text).unwrap();
    let mut inventory = Inventory::new();
    inventory.add_live(&live["items"][0]);
    let slot = &inventory.finish()[0];
    assert_eq!(slot.reference, Reference::Value("ami-1".into()));
    assert_eq!(slot.fields[0].site, None);
}

#[test]
fn a_missing_field_is_put_where_it_belongs() {
    let azure = machine_set(
        "kind: AzureMachineProviderSpec\nimage:\n  offer: b\n  publisher: a\n  resourceID: x # gone\n  sku: c\n  version: d\nlocation: l",
    );
    let new = written(&azure, Role::ImageType, "MarketplaceNoPlan");
    assert_eq!(
        new,
        azure
            .replace("            version: d", "            type: MarketplaceNoPlan\n            version: d")
    );
    let flow =
        machine_set("kind: AzureMachineProviderSpec\nimage: {offer: b, publisher: a, sku: c, version: d}");
    let new = written(&flow, Role::ImageType, "MarketplaceNoPlan");
    assert_eq!(new, flow.replace("version: d", "\"type\": \"MarketplaceNoPlan\", version: d"));
}

#[test]
fn empty_and_null_values_are_filled() {
    let azure = machine_set(
        "kind: AzureMachineProviderSpec\nimage:\n  publisher: a\n  offer:\n  sku: ~\n  version: ''",
    );
    assert_eq!(written(&azure, Role::Offer, "aro4"), azure.replace("offer:\n", "offer: aro4\n"));
    assert_eq!(written(&azure, Role::Sku, "s"), azure.replace("sku: ~", "sku: s"));
    assert_eq!(written(&azure, Role::Version, "v"), azure.replace("version: ''", "version: 'v'"));
}

#[test]
fn the_second_place_of_openstack_is_told_only_where_it_repeats() {
    let roles =
        |provider: &str| one(&machine_set(provider)).fields.iter().map(|f| f.role).collect::<Vec<_>>();
    assert_eq!(
        roles("kind: OpenstackProviderSpec\nimage: i\nrootVolume: {sourceUUID: i}"),
        [Role::Image, Role::Repeated]
    );
    assert_eq!(
        roles("kind: OpenstackProviderSpec\nimage: i\nrootVolume: {sourceUUID: other}"),
        [Role::Image]
    );
}

#[test]
fn facts_around_the_reference_are_read() {
    let text = "apiVersion: machine.openshift.io/v1\nkind: ControlPlaneMachineSet\nmetadata:\n  name: cluster\n  ownerReferences: [{kind: Boss, name: b}]\n  labels: {machineconfiguration.openshift.io/osstream: rhel-10}\n  annotations: {capacity.cluster-autoscaler.kubernetes.io/labels: 'a=b, kubernetes.io/arch = arm64'}\nspec:\n  strategy: {type: OnDelete}\n  template:\n    machines_v1beta1_machine_openshift_io:\n      metadata: {labels: {machine.openshift.io/os-id: Windows}}\n      spec:\n        providerSpec:\n          value: {kind: AWSMachineProviderConfig, ami: {id: ami-1}, userDataSecret: {name: s}}\nstatus: {authoritativeAPI: ClusterAPI}\n";
    let slot = one(text);
    assert_eq!((slot.kind, slot.strategy), (SlotKind::ControlPlane, Strategy::OnDelete));
    assert_eq!(slot.architecture, DeclaredArchitecture::Declared("aarch64".into()));
    assert_eq!(slot.os_stream.as_deref(), Some("rhel-10"));
    assert_eq!(slot.owners[0].name, "b");
    assert!(slot.windows);
    assert_eq!(slot.authority, machines::ApiAuthority::Other);
    assert_eq!(slot.user_data_secret.as_deref(), Some("s"));
}

const CLUSTER_API: &str = "\
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: d, namespace: n}
spec:
  clusterName: c
  template: {spec: {infrastructureRef: {kind: AWSMachineTemplate, name: t}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineSet
metadata: {name: s, namespace: n}
spec:
  template: {spec: {infrastructureRef: {kind: AWSMachineTemplate, name: t}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: c, namespace: n}
spec: {region: eu-west-1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
metadata: {name: t, namespace: n}
spec: {template: {spec: {ami: {id: ami-1}}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
metadata: {name: alone, namespace: n}
spec: {template: {spec: {ami: {id: ami-1}}}}
";

#[test]
fn a_template_gives_each_machine_set_a_slot_of_its_own() {
    let all = slots(CLUSTER_API);
    let told: Vec<_> =
        all.iter().map(|s| (s.object.kind.as_str(), s.strategy, s.region.as_deref())).collect();
    assert_eq!(
        told,
        [
            ("MachineDeployment", Strategy::ReplacesMachines, Some("eu-west-1")),
            ("MachineSet", Strategy::NewMachinesOnly, None),
            ("AWSMachineTemplate", Strategy::NewMachinesOnly, None),
        ]
    );
    assert_eq!(all[0].pointer, "/spec/template/spec/infrastructureRef/name");
    assert_eq!(all[0].template.as_ref().unwrap().id.name, "t");
    assert!(all[2].template.as_ref().unwrap().repoint.is_none());
}

#[test]
fn lists_and_hosts_are_read() {
    let text = "kind: BareMetalHostList\napiVersion: metal3.io/v1alpha1\nitems:\n- apiVersion: metal3.io/v1alpha1\n  kind: BareMetalHost\n  metadata: {name: h}\n  spec: {image: {url: http://x/y.qcow2, checksum: c}}\n  status: {provisioning: {state: provisioned}}\n";
    let slot = one(text);
    assert!(slot.kind == SlotKind::Host && slot.provisioned);
    let provisioning = "apiVersion: metal3.io/v1alpha1\nkind: Provisioning\nmetadata: {name: p}\nspec: {provisioningOSDownloadURL: ''}\n";
    assert_eq!(one(provisioning).reference, Reference::InRelease);
}

#[test]
fn what_was_meant_to_be_a_machine_set_is_told_from_other_yaml() {
    for text in [
        "kind: MachineSet\n",
        "- kind: MachineSet",
        "{\"kind\": \"MachineSet\"",
        "kind: \"AWSMachineTemplate\"",
    ] {
        assert!(Inventory::looks_like_machines(text), "{text}");
    }
    for text in ["kind: MachineConfig", "# kind: MachineSet", "kind: Deployment", "the kind: of MachineSet"] {
        assert!(!Inventory::looks_like_machines(text), "{text}");
    }
}

/// A value as some writer of YAML may put it.
fn scalar(value: &str, style: u8) -> String {
    match style {
        0 => value.to_owned(),
        1 => format!("'{value}'"),
        2 => format!("\"{value}\""),
        _ => format!("  {value}   # note"),
    }
}

proptest! {
    #[test]
    fn an_edit_reads_back_as_its_value_and_all_else_as_before(
        value in "[ -~]{0,40}",
        style in 0u8..4,
        crlf in any::<bool>(),
        flow in any::<bool>(),
        comment in "[a-zäöü ]{0,20}",
    ) {
        let reference = scalar("ami-0123456789abcdef0", style);
        let provider = if flow && style < 3 {
            format!("kind: AWSMachineProviderConfig\nami: {{id: {reference}, arn: x}}\ntail: 'ü'")
        } else {
            format!("# {comment}\nkind: AWSMachineProviderConfig\nami:\n  id: {reference}\n  arn: x\ntail: 'ü'")
        };
        let text = machine_set(&provider);
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        let new = written(&text, Role::Image, &value);
        let read = |text: &str| {
            let mut values = Vec::new();
            tree::documents(text, |d| values.push(d.unwrap().root.to_json().unwrap()));
            values.remove(0)
        };
        let mut expected = read(&text);
        expected["spec"]["template"]["spec"]["providerSpec"]["value"]["ami"]["id"] = value.into();
        prop_assert_eq!(read(&new), expected);
        // What stands before and behind the line is the same to the byte.
        let start = text.find("ami-0123").unwrap() - 1;
        let end = text.len() - text.find("ami-0123").unwrap() - "ami-0123456789abcdef0".len() - 1;
        prop_assert_eq!(&new.as_bytes()[..start], &text.as_bytes()[..start]);
        prop_assert_eq!(&new.as_bytes()[new.len() - end..], &text.as_bytes()[text.len() - end..]);
    }

    #[test]
    fn edits_of_any_ranges_never_panic(ranges in prop::collection::vec((0usize..30, 0usize..30, "[a-z]{0,3}"), 0..6)) {
        let edits: Vec<Edit> = ranges.into_iter().map(|(a, b, text)| Edit { range: a..b, text }).collect();
        let _ = edit::apply("größe: 'ü' und noch mehr", &edits);
    }
}

fn json_set(image: &str) -> String {
    format!(
        r#"{{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet", "metadata": {{"name": "w"}}, "spec": {{"template": {{"spec": {{"providerSpec": {{"value": {{"kind": "AzureMachineProviderSpec", "image": {image}}}}}}}}}}}}}"#
    )
}

#[test]
fn json_stays_json() {
    let text = json_set(r#"{"offer": null, "publisher": "", "sku": ""}"#);
    let edits: Vec<Edit> =
        one(&text).fields.iter().filter_map(|f| Some(f.site.as_ref()?.write("x"))).collect();
    let new = edit::apply(&text, &edits).unwrap();
    let value: serde_json::Value = serde_json::from_str(&new).expect("still JSON");
    let image = &value["spec"]["template"]["spec"]["providerSpec"]["value"]["image"];
    for key in ["offer", "publisher", "sku", "version", "resourceID", "type"] {
        assert_eq!(image[key], "x", "{new}");
    }
}

#[test]
fn several_missing_fields_each_get_a_line_and_comments_stay_with_their_keys() {
    let base = "kind: AzureMachineProviderSpec\nimage:\n  offer: b\n  publisher: a # who\n  # the version\n  version: d\nlocation: l";
    for crlf in [false, true] {
        let text = machine_set(base);
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        let edits: Vec<Edit> = one(&text)
            .fields
            .iter()
            .filter(|f| !f.exists)
            .map(|f| f.site.as_ref().unwrap().write("x"))
            .collect();
        let new = edit::apply(&text, &edits).unwrap();
        let lines = "publisher: a # who\n            resourceID: x\n            sku: x\n            type: x\n            # the version\n";
        let lines = if crlf { lines.replace('\n', "\r\n") } else { lines.to_owned() };
        assert!(new.contains(&lines), "{new}");
        assert_eq!(new.matches('\n').count(), text.matches('\n').count() + 3);
        assert_eq!(crlf, !new.replace("\r\n", "").contains('\n'));
    }
}

#[test]
fn json_lines_arrays_and_nested_lists_are_read() {
    let set = json_set("{}");
    assert_eq!(slots(&format!("{set}\n{set}\n")).len(), 2, "one a line");
    assert_eq!(slots(&format!("[{set}, {set}]")).len(), 2, "an array");
    let list = format!(r#"{{"kind": "List", "items": [{{"kind": "MachineSetList", "items": [{set}]}}]}}"#);
    assert_eq!(slots(&list).len(), 1, "a list in a list");
    // A YAML parser does not take a raw DEL; the value is read all the same, and cannot be edited.
    let odd = set.replace("\"name\": \"w\"", "\"name\": \"w\u{7f}\"");
    let slot = one(&odd);
    assert!(slot.fields.iter().all(|f| f.site.is_none()));
    // The second of two values stands where the file has it.
    let text = format!("{set}\n{}", json_set(r#"{"publisher": "a"}"#));
    let second = &slots(&text)[1];
    let site = second.fields.iter().find(|f| f.role == Role::Publisher).unwrap().site.as_ref().unwrap();
    assert_eq!(edit::apply(&text, &[site.write("z")]).unwrap(), text.replace("\"a\"", "\"z\""));
    assert_eq!(second.object.line, 2);
}

#[test]
fn truncated_json_on_one_line_is_told() {
    let set = json_set("{}");
    let broken = &set[..set.len() - 1];
    assert!(Inventory::looks_like_machines(broken));
    let mut errors = 0;
    tree::documents(broken, |d| errors += usize::from(d.is_err()));
    assert_eq!(errors, 1);
}

#[test]
fn merges_of_merges_cost_no_time() {
    let mut text = "apiVersion: v1\nkind: MachineSet\nx0: &a0 {x: 1}\n".to_owned();
    for n in 1..60 {
        let line = format!("x{n}: &a{n} {{<<: [*a{}, *a{}]}}\n", n - 1, n - 1);
        text.push_str(&line);
    }
    text.push_str("<<: *a59\n");
    assert!(slots(&text).is_empty());
}

#[test]
fn a_name_is_never_written_where_an_id_stands() {
    let slot = one(&machine_set("kind: NutanixMachineProviderConfig\nimage: {type: uuid, uuid: u}"));
    assert!(slot.fields.is_empty());
    let slot = one(&machine_set("kind: NutanixMachineProviderConfig\nimage: {type: name, name: n}"));
    assert_eq!(slot.fields.len(), 1);
}

#[test]
fn a_template_is_copied_only_where_the_copy_means_the_same() {
    let template = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\nmetadata:\n  name: t\nspec:\n  template:\n    spec:\n      ami:\n        id: ami-1\n      note: |+\n        kept\n\n";
    let copy = |text: &str| {
        let document = slots(text)[0].template.clone().unwrap().document;
        document.map(|range| text[range].to_owned())
    };
    assert_eq!(copy(template).as_deref(), Some(template));
    let indented: String =
        template.lines().map(|l| if l.is_empty() { "\n".to_owned() } else { format!("  {l}\n") }).collect();
    assert!(copy(&format!("---\n{indented}")).unwrap().starts_with("  apiVersion"));
    assert_eq!(
        copy(&format!("# of this file\n---\n{template}# of the next\n---\nkind: Pod\n")).as_deref(),
        Some(template)
    );
    assert_eq!(copy(&template.replace("apiVersion: i", "--- &a\napiVersion: i")).as_deref(), Some(template));
    assert_eq!(
        copy(&format!("%TAG ! tag:example.com,2000:\n---\n{template}")),
        None,
        "a directive would be lost"
    );
    assert_eq!(
        copy(
            "--- {apiVersion: infrastructure.cluster.x-k8s.io/v1, kind: AWSMachineTemplate, metadata: {name: t}, spec: {template: {spec: {ami: {id: i}}}}}\n"
        ),
        None
    );
}
