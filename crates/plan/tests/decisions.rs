//! Decisions, one small question each. The names of the tests are the rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use plan::{Action, ClusterArchitecture, FindingReason, Reason, SkewState};
use serde_json::{Value, json};

mod case;

use case::{Case, aws_set, new, old, provider, stream};

#[test]
fn a_known_older_image_is_updated_by_one_guarded_patch() {
    let decision = Case::aws("ami-old-x").is(Reason::NewerImage);
    assert_eq!(decision.to.reference.as_deref(), Some("ami-new-x"));
    assert_eq!(decision.from.version.as_deref(), Some("412.86.202402272018-0"));
    let patch = serde_json::to_value(&decision.patch).unwrap();
    let pointer = "/spec/template/spec/providerSpec/value/ami/id";
    assert_eq!(
        patch,
        json!([{"op": "test", "path": pointer, "value": "ami-old-x"}, {"op": "replace", "path": pointer, "value": "ami-new-x"}])
    );
    assert_eq!((decision.skew.state, decision.skew.after), (SkewState::Behind, SkewState::Current));
    assert_eq!(decision.skew.age_days, Some(1008));
}

#[test]
fn an_unknown_image_is_left_and_never_counts_as_fine() {
    let case = Case::aws("ami-mine");
    let decision = case.is(Reason::UnknownImage);
    assert_eq!(decision.skew.state, SkewState::Unknown);
    assert_eq!(case.plan().summary.skew.state, SkewState::Unknown);
    assert_eq!(case.plan().summary.skew.oldest, None);
}

#[test]
fn an_adopted_image_is_ours_by_name() {
    Case::aws("ami-mine").policy(json!({"adopt": ["ami-mine"]})).is(Reason::Adopted);
    Case::aws("ami-mine").policy(json!({"adopt": ["ami-min"]})).is(Reason::UnknownImage);
}

/// OCPBUGS-55231: the incumbent once fell back to us-east-1.
#[test]
fn another_regions_image_is_never_used() {
    let decision = Case::new(aws_set("ami-old-x", "ap-south-2")).is(Reason::NoImageForRegion);
    assert_eq!(decision.to.reference, None);
    let plan = Case::new(aws_set("ami-old-x", "ap-south-2")).plan();
    assert_eq!(plan.findings[0].reason, FindingReason::ImageOfOtherRegion);
}

#[test]
fn an_image_of_the_wrong_place_is_put_right() {
    let decision = Case::new(aws_set("ami-old-x", "eu-west-1")).is(Reason::WrongPlace);
    assert_eq!(decision.to.reference.as_deref(), Some("ami-new-eu"));
}

/// OCPBUGS-69674: an arm set on an x86 control plane was given an x86 image.
#[test]
fn the_architecture_comes_from_proof_and_is_never_assumed() {
    let multi = |case: Case| case.facts(|f| f.architecture = Some(ClusterArchitecture::Multi));
    // The current image's.
    let decision = multi(Case::aws("ami-old-a")).is(Reason::NewerImage);
    assert_eq!(decision.to.reference.as_deref(), Some("ami-new-a"));
    // The declared one wins over the image's, and the difference is told.
    let text = aws_set("ami-old-a", "us-east-1").replace("labels:", "annotations: {capacity.cluster-autoscaler.kubernetes.io/labels: 'x=y,kubernetes.io/arch=amd64'}\n  labels:");
    let plan = multi(Case::new(text)).plan();
    assert_eq!(plan.decisions[0].to.reference.as_deref(), Some("ami-new-x"));
    assert_eq!(plan.findings[0].reason, FindingReason::ImageOfOtherArchitecture);
    // Nothing tells: nothing is done.
    let case = Case::aws("ami-mine").policy(json!({"adopt": ["ami-mine"]}));
    multi(case).is(Reason::ArchitectureUnknown);
    // OCPBUGS-60119: an architecture that does not exist.
    let text = aws_set("ami-old-x", "us-east-1").replace("labels:", "annotations: {capacity.cluster-autoscaler.kubernetes.io/labels: 'kubernetes.io/arch=x64'}\n  labels:");
    Case::new(text).is(Reason::ArchitectureInvalid);
}

#[test]
fn a_region_that_lags_is_current_and_told() {
    let mut release = new();
    release["architectures"]["x86_64"]["images"]["aws"]["regions"]["me-central-1"] =
        json!({"release": "9.6.20260112-0", "image": "ami-me"});
    let case = Case::new(aws_set("ami-me", "me-central-1")).release(vec![release]);
    let decision = case.is(Reason::RegionBehind);
    assert_eq!(decision.skew.state, SkewState::Behind);
    assert!(decision.needs_human());
    assert_eq!(case.plan().findings[0].reason, FindingReason::RegionBehind);
}

#[test]
fn nothing_is_moved_backwards_but_by_a_pin() {
    let backwards = || Case::aws("ami-new-x").release(vec![old()]).known(vec![new()]);
    backwards().is(Reason::WouldDowngrade);
    backwards().policy(json!({"allowDowngrade": true})).is(Reason::NewerImage);
    let pinned = Case::aws("ami-new-x").policy(json!({"pin": {"release": "412.86.202402272018-0"}}));
    let decision = pinned.is(Reason::Pinned);
    assert_eq!(decision.to.reference.as_deref(), Some("ami-old-x"));
    Case::aws("ami-new-x")
        .policy(json!({"pin": {"release": "411.86.202401010000-0"}}))
        .is(Reason::PinnedReleaseUnknown);
    let expired = Case::aws("ami-old-x")
        .policy(json!({"pin": {"release": "412.86.202402272018-0", "until": "2026-11-30T00:00:00Z"}}));
    expired.is(Reason::NewerImage);
    assert_eq!(expired.plan().findings[0].reason, FindingReason::PinExpired);
}

#[test]
fn denied_young_and_foreign_builds_are_not_moved_to() {
    Case::aws("ami-old-x").policy(json!({"deny": ["9.6.20260217-1"]})).is(Reason::Denied);
    Case::aws("ami-old-x").policy(json!({"minimumAge": "400d"})).is(Reason::TooYoung);
    Case::aws("ami-old-x").policy(json!({"minimumAge": "200d"})).is(Reason::NewerImage);
    let fedora = || {
        Case::aws("ami-f").known(vec![stream(
            "39.20231101.3.0",
            &[("x86_64", "us-east-1", "ami-f")],
            "fedora-coreos-39",
        )])
    };
    fedora().is(Reason::DistributionChange);
    fedora().policy(json!({"allowDistributionChange": true})).is(Reason::NewerImage);
}

#[test]
fn two_images_of_one_version_are_an_error_and_not_a_choice() {
    let twin = stream("9.6.20260217-1", &[("x86_64", "us-east-1", "ami-twin")], "rhcos-new");
    Case::aws("ami-twin").known(vec![twin.clone()]).is(Reason::SameVersionOtherImage);
    Case::aws("ami-old-x").release(vec![new(), twin]).is(Reason::AmbiguousRelease);
}

#[test]
fn the_policy_only_acts_where_it_manages_and_selects() {
    let decision = Case::aws("ami-old-x").policy(json!({"mode": "Observe"})).is(Reason::PolicyObserves);
    assert_eq!(decision.to.reference.as_deref(), Some("ami-new-x"));
    assert!(decision.patch.is_empty());
    Case::aws("ami-old-x").policy(json!({"mode": "Paused"})).is(Reason::PolicyPaused);
    Case::aws("ami-old-x")
        .policy(json!({"selector": {"matchLabels": {"tier": "db"}}}))
        .is(Reason::NotSelected);
    Case::aws("ami-old-x")
        .policy(json!({"selector": {"matchLabels": {"tier": "web"}}}))
        .is(Reason::NewerImage);
}

#[test]
fn what_is_not_ours_to_manage_is_left() {
    let set = aws_set("ami-old-x", "us-east-1");
    let owned = set.replace("labels:", "ownerReferences: [{kind: MachinePool, name: p}]\n  labels:");
    Case::new(owned).is(Reason::OwnedByController);
    let windows = set.replace(
        "    spec:\n      providerSpec",
        "    metadata: {labels: {machine.openshift.io/os-id: Windows}}\n    spec:\n      providerSpec",
    );
    assert!(!Case::new(windows).is(Reason::NotCoreOS).skew.counts);
    Case::new(set.replace("spec:\n  template", "spec:\n  authoritativeAPI: ClusterAPI\n  template"))
        .is(Reason::NotAuthoritative);
    Case::new(set.replace("ami-old-x", "'${AMI}'")).is(Reason::Placeholder);
    let machine = "apiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata: {name: m}\nspec: {providerSpec: {value: {kind: AWSMachineProviderConfig, ami: {id: ami-old-x}, placement: {region: us-east-1}}}}\n";
    Case::new(machine).is(Reason::ReadOnly);
    let confidential = provider(
        "{kind: AzureMachineProviderSpec, image: {publisher: a, offer: b}, securityProfile: {settings: {securityType: ConfidentialVM}}}",
    );
    assert!(Case::new(confidential).is(Reason::SecurityType).skew.counts);
}

#[test]
fn the_stream_that_a_set_asks_for_decides() {
    let ten = stream("10.2.20260405-0", &[("x86_64", "us-east-1", "ami-ten")], "rhcos-ten");
    let both = || Case::aws("ami-old-x").release(vec![new(), ten.clone()]);
    let labelled = |stream: &str| {
        let mut case = both();
        case.manifest = case
            .manifest
            .replace("tier: web", &format!("machineconfiguration.openshift.io/osstream: {stream}"));
        case
    };
    both().is(Reason::StreamUnknown);
    assert_eq!(labelled("rhel-10").is(Reason::NewerImage).to.reference.as_deref(), Some("ami-ten"));
    assert_eq!(labelled("rhel-9").is(Reason::NewerImage).to.reference.as_deref(), Some("ami-new-x"));
    labelled("rhel-11").is(Reason::StreamNotInRelease);
    let default = both().policy(json!({"defaultOsStream": "rhel-9"})).is(Reason::NewerImage);
    assert_eq!(default.to.reference.as_deref(), Some("ami-new-x"));
}

#[test]
fn a_control_plane_is_changed_only_where_its_machines_stay_or_the_policy_says_so() {
    let set = |strategy: &str| {
        format!(
            "apiVersion: machine.openshift.io/v1\nkind: ControlPlaneMachineSet\nmetadata: {{name: cluster}}\nspec:\n  strategy: {{{strategy}}}\n  template:\n    machines_v1beta1_machine_openshift_io:\n      spec:\n        providerSpec:\n          value: {{kind: AWSMachineProviderConfig, ami: {{id: ami-old-x}}, placement: {{region: us-east-1}}}}\n"
        )
    };
    let refused = Case::new(set("type: RollingUpdate")).is(Reason::WouldReplaceMachines);
    assert_eq!(refused.patch.len(), 2, "what would be done is shown");
    assert!(refused.changes.is_empty(), "and not done");
    Case::new(set("")).is(Reason::WouldReplaceMachines);
    Case::new(set("type: OnDelete")).is(Reason::NewerImage);
    Case::new(set("type: RollingUpdate"))
        .policy(json!({"allowReplaceMachines": true}))
        .is(Reason::NewerImage);
    Case::new(set("type: OnDelete").replace("ami-old-x", "managed")).is(Reason::ManagedNotAllowed);
}

#[test]
fn the_word_managed_is_resolved_and_never_written_over() {
    let decision = Case::aws("managed").is(Reason::Managed);
    assert_eq!((decision.action, decision.patch.len()), (Action::Resolve, 0));
    assert_eq!(decision.to.reference.as_deref(), Some("ami-new-x"));
    assert_eq!(decision.skew.state, SkewState::Current);
}

#[test]
fn a_google_path_keeps_the_address_in_front_of_it() {
    let set = |image: &str| {
        provider(&format!(
            "{{kind: GCPMachineProviderSpec, region: r, disks: [{{boot: true, image: \"{image}\"}}]}}"
        ))
    };
    let prefix = "https://www.googleapis.com/compute/v1/";
    let path = |name: &str| format!("projects/rhcos-cloud/global/images/{name}");
    let decision = Case::new(set(&format!("{prefix}{}", path("rhcos-old")))).is(Reason::NewerImage);
    assert_eq!(decision.to.reference, Some(format!("{prefix}{}", path("rhcos-new"))));
    Case::new(set(&path("rhcos-new"))).is(Reason::UpToDate);
    // A name that looks like ours is not (OCPBUGS-57348).
    Case::new(set(&path("rhcos-mine"))).is(Reason::UnknownImage);
    Case::new(set("x-abc-rhcos-image")).is(Reason::UnknownImage);
    Case::new(set("x-abc-rhcos-image"))
        .facts(|f| f.infrastructure_name = Some("x-abc".into()))
        .is(Reason::InstallerImage);
}

#[test]
fn azure_fields_change_together_and_the_generation_stays() {
    let mut release = new();
    let image = |sku: &str| json!({"publisher": "azureopenshift", "offer": "aro4", "sku": sku, "version": "9.6.20251015"});
    release["architectures"]["x86_64"]["rhel-coreos-extensions"]["marketplace"]["azure"]["no-purchase-plan"] =
        json!({"hyperVGen1": image("aro_420"), "hyperVGen2": image("420-v2")});
    let set =
        |image: &str| provider(&format!("{{kind: AzureMachineProviderSpec, location: l, image: {image}}}"));
    let case = |image: &str| Case::new(set(image)).release(vec![release.clone()]);
    let newer = case("{publisher: azureopenshift, offer: aro4, sku: 419-v2, version: 419.6.20250523, resourceID: '', type: MarketplaceNoPlan}").is(Reason::NewerImage);
    assert_eq!(newer.to.reference.as_deref(), Some("azureopenshift/aro4/420-v2/9.6.20251015"));
    case("{publisher: azureopenshift, offer: aro4, sku: 420-v2, version: 9.6.20251015, resourceID: '', type: MarketplaceNoPlan}").is(Reason::UpToDate);
    case("{publisher: azureopenshift, offer: aro4, sku: 420-v2, version: 9.6.20251015, resourceID: ''}")
        .is(Reason::ImageFieldsDiffer);
    case("{publisher: canonical, offer: ubuntu, sku: lts, version: latest}").is(Reason::UnknownImage);
    let own = "{publisher: '', offer: '', sku: '', version: '', resourceID: /resourceGroups/c-1-rg/providers/Microsoft.Compute/galleries/gallery_c_1/images/c-1-gen2/versions/latest}";
    case(own).is(Reason::UnknownImage);
    let installer =
        case(own).facts(|f| f.infrastructure_name = Some("c-1".into())).is(Reason::InstallerImage);
    assert_eq!(installer.to.reference.as_deref(), Some("azureopenshift/aro4/420-v2/9.6.20251015"));
    assert_eq!(
        installer.patch.iter().filter(|op| op.op != "test").count(),
        6,
        "publisher to type, and the resource id emptied"
    );
    // OCPBUGS-109746: a generation that the release dropped is a reason, not an error.
    let mut without = release.clone();
    without["architectures"]["x86_64"]["rhel-coreos-extensions"]["marketplace"]["azure"]["no-purchase-plan"]
        ["hyperVGen1"] = Value::Null;
    Case::new(set("{publisher: azureopenshift, offer: aro4, sku: aro_419, version: 419.6.20250523}"))
        .release(vec![without])
        .is(Reason::NoImageForGeneration);
}

#[test]
fn a_private_image_waits_until_its_name_is_known() {
    let set = || {
        Case::new(provider(
            "{kind: OpenstackProviderSpec, image: c-1-rhcos, rootVolume: {sourceUUID: c-1-rhcos}}",
        ))
    };
    let waiting = set().is(Reason::ImageNotInStore);
    assert_eq!(waiting.artifacts[0].uncompressed_sha256.as_deref(), Some("bb"));
    assert_eq!(waiting.to.version.as_deref(), Some("9.6.20260217-1"));
    let named = |case: Case| case.policy(json!({"imageNames": {"openstack": "rhcos-9.6"}}));
    named(set()).is(Reason::UnknownImage);
    let installer =
        named(set()).facts(|f| f.infrastructure_name = Some("c-1".into())).is(Reason::InstallerImage);
    assert_eq!(installer.patch.iter().filter(|op| op.op == "replace").count(), 2, "both places change");
    let at = Case::new(provider("{kind: OpenstackProviderSpec, image: rhcos-9.6}"))
        .policy(json!({"imageNames": {"openstack": "rhcos-9.6"}}));
    at.is(Reason::UpToDate);
}

#[test]
fn limits_break_a_set_and_the_whole() {
    let limited = |ami: &str| {
        Case::aws(ami).policy(json!({"skew": {"minimum": {"openshift": "4.13.0", "rhel": "9.2"}}}))
    };
    let decision = limited("ami-old-x").is(Reason::NewerImage);
    assert_eq!((decision.skew.state, decision.skew.after), (SkewState::Violation, SkewState::Current));
    assert_eq!(limited("ami-new-x").is(Reason::UpToDate).skew.state, SkewState::Current);
    assert_eq!(limited("ami-mine").plan().summary.skew.state, SkewState::Unknown);
}

#[test]
fn bytes_under_an_anchor_change_only_together() {
    let item = |name: &str, ami: &str| {
        format!(
            "- apiVersion: machine.openshift.io/v1beta1\n  kind: MachineSet\n  metadata: {{name: {name}}}\n  spec: {{template: {{spec: {{providerSpec: {{value: {{kind: AWSMachineProviderConfig, ami: {{id: {ami}}}, placement: {{region: us-east-1}}}}}}}}}}}}\n"
        )
    };
    let list = |items: &str| format!("apiVersion: v1\nkind: List\nitems:\n{items}");
    let together = list(&(item("a", "&i ami-old-x") + &item("b", "*i")));
    let plan = Case::new(together).plan();
    assert!(plan.decisions.iter().all(|d| d.reason == Reason::NewerImage));
    let elsewhere =
        list(&(item("a", "&i ami-old-x") + "- {apiVersion: v1, kind: Pod, metadata: {name: *i}}\n"));
    Case::new(elsewhere).is(Reason::SharedByAnchor);
}

#[test]
fn one_sets_trouble_is_one_decision() {
    let text = format!(
        "{}---\n{}---\n{}",
        aws_set("ami-old-x", "us-east-1"),
        aws_set("ami-old-x", "nowhere"),
        aws_set("ami-new-x", "us-east-1")
    );
    let plan = Case::new(text).plan();
    let reasons: Vec<_> = plan.decisions.iter().map(|d| d.reason).collect();
    assert_eq!(reasons, [Reason::NewerImage, Reason::NoImageForRegion, Reason::UpToDate]);
    assert_eq!(plan.summary.actions["update"], 1);
}

fn kubevirt(image: &str) -> String {
    format!(
        "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineSet\nmetadata: {{name: s}}\nspec: {{template: {{spec: {{infrastructureRef: {{kind: KubevirtMachineTemplate, name: t}}}}}}}}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: KubevirtMachineTemplate\nmetadata:\n  name: t\nspec:\n  template:\n    spec:\n      virtualMachineTemplate:\n        spec:\n          template:\n            spec:\n              volumes:\n              - containerDisk:\n                  image: {image}\n"
    )
}

/// One tag serves every architecture: it proves none, and no version.
#[test]
fn a_tag_that_moves_names_no_one_image() {
    let container = |digest: &str| json!({"release": "9.6.20260217-1", "image": "quay.io/x:rhel-9.6", "digest-ref": format!("quay.io/x@sha256:{digest}")});
    let mut release = new();
    release["architectures"]["s390x"]["images"]["kubevirt"] = container("s");
    release["architectures"]["x86_64"]["images"]["kubevirt"] = container("x");
    let mut known = release.clone();
    known["architectures"]["x86_64"]["images"]["kubevirt"] = json!({"release": "9.6.20251212-1", "image": "quay.io/x:rhel-9.6", "digest-ref": "quay.io/x@sha256:o"});
    let case =
        |image: &str| Case::new(kubevirt(image)).release(vec![release.clone()]).known(vec![known.clone()]);
    case("quay.io/x:rhel-9.6").is(Reason::NoImageId);
    let decision = case("quay.io/x@sha256:o").is(Reason::NewerImage);
    assert_eq!(decision.to.reference.as_deref(), Some("quay.io/x@sha256:x"));
}

#[test]
fn a_pin_names_one_build_and_keeps_the_os_stream() {
    let ten = stream("10.2.20260405-0", &[("x86_64", "us-east-1", "ami-ten")], "rhcos-ten");
    let map = |nine: &Value, ten: &Value| {
        let streams = json!({"rhel-10": ten, "rhel-9": nine}).to_string();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"releaseVersion": "5.0.0", "stream": nine.to_string(), "streams": streams}})
    };
    let pinned = |pin: &str| {
        Case::aws("ami-old-x").release(vec![map(&new(), &ten)]).policy(json!({"pin": {"release": pin}}))
    };
    assert_eq!(pinned("5.0.0").is(Reason::Pinned).to.reference.as_deref(), Some("ami-new-x"));
    assert_eq!(pinned("9.6.20260217-1").is(Reason::Pinned).to.reference.as_deref(), Some("ami-new-x"));
    let mut labelled = pinned("10.2.20260405-0");
    labelled.manifest =
        labelled.manifest.replace("tier: web", "machineconfiguration.openshift.io/osstream: rhel-9");
    labelled.is(Reason::StreamNotInRelease);
    // A build that lags in one region is not delivered by another build there.
    let mut lagging = new();
    lagging["architectures"]["x86_64"]["images"]["aws"]["regions"]["me-central-1"] =
        json!({"release": "9.6.20260112-0", "image": "ami-me"});
    let pin = json!({"pin": {"release": "9.6.20260112-0"}});
    Case::aws("ami-old-x")
        .release(vec![lagging.clone()])
        .policy(pin.clone())
        .known(vec![old()])
        .is(Reason::NoImageForRegion);
    // Metadata of its own day has it in the other regions too.
    let day = stream("9.6.20260112-0", &[("x86_64", "us-east-1", "ami-day")], "rhcos-day");
    let found =
        Case::aws("ami-old-x").release(vec![lagging]).policy(pin).known(vec![old(), day]).is(Reason::Pinned);
    assert_eq!(found.to.reference.as_deref(), Some("ami-day"));
    // A set without a label is of the default stream, and no pin moves it to another.
    pinned("10.2.20260405-0").is(Reason::StreamNotInRelease);
}

#[test]
fn a_bad_range_is_about_one_distribution() {
    let bad = |to: &str| json!({"skew": {"knownBad": [{"to": to, "reason": "does not boot"}]}});
    let state = |to: &str| Case::aws("ami-new-x").policy(bad(to)).is(Reason::UpToDate).skew.state;
    assert_ne!(state("34.20210904.2.0"), SkewState::Violation);
    assert_eq!(state("9.6.20260301-0"), SkewState::Violation);
}

#[test]
fn images_whose_order_is_unknown_are_not_moved_between() {
    let mut release = new();
    release["architectures"]["x86_64"]["images"]["gcp"].as_object_mut().unwrap().remove("release");
    let set = provider(
        "{kind: GCPMachineProviderSpec, disks: [{boot: True, image: projects/rhcos-cloud/global/images/rhcos-old}]}",
    );
    let case = || Case::new(set.clone()).release(vec![release.clone()]);
    case().is(Reason::CannotCompare);
    assert_eq!(
        case().policy(json!({"allowDowngrade": true})).is(Reason::NewerImage).skew.after,
        SkewState::Unknown
    );
    case().policy(json!({"minimumAge": "1h"})).is(Reason::TooYoung);
    let marketplace = |version: &str| {
        provider(&format!(
            "{{kind: AzureMachineProviderSpec, image: {{publisher: azureopenshift, offer: aro4, sku: 419-v2, version: {version}}}}}"
        ))
    };
    let mut azure = new();
    azure["architectures"]["x86_64"]["rhel-coreos-extensions"]["marketplace"]["azure"]["no-purchase-plan"]
        ["hyperVGen2"] =
        json!({"publisher": "azureopenshift", "offer": "aro4", "sku": "420-v2", "version": "9.6.20251015"});
    Case::new(marketplace("latest")).release(vec![azure.clone()]).is(Reason::NoImageId);
    Case::new(marketplace("421.1.2027")).release(vec![azure]).is(Reason::CannotCompare);
}

#[test]
fn the_generation_of_an_azure_image_is_proven_or_waited_for() {
    let mut release = new();
    let image = |sku: &str| json!({"publisher": "azureopenshift", "offer": "aro4", "sku": sku, "version": "9.6.20251015"});
    release["architectures"]["x86_64"]["rhel-coreos-extensions"]["marketplace"]["azure"]["no-purchase-plan"] =
        json!({"hyperVGen1": image("aro_420"), "hyperVGen2": image("420-v2")});
    // A cluster whose own name holds the word.
    let id = "/resourceGroups/gen2lab-rg/providers/Microsoft.Compute/images/gen2lab";
    let set = |id: &str| {
        provider(&format!(
            "{{kind: AzureMachineProviderSpec, image: {{publisher: '', offer: '', sku: '', version: '', resourceID: {id}}}}}"
        ))
    };
    let case = Case::new(set(id))
        .release(vec![release.clone()])
        .facts(|f| f.infrastructure_name = Some("gen2lab".into()));
    assert_eq!(
        case.is(Reason::InstallerImage).to.reference.as_deref(),
        Some("azureopenshift/aro4/aro_420/9.6.20251015")
    );
    let adopted =
        Case::new(set("/x/mine")).release(vec![release.clone()]).policy(json!({"adopt": ["/x/mine"]}));
    adopted.is(Reason::GenerationUnknown);
}

#[test]
fn the_installers_own_image_is_told_by_its_whole_name() {
    let set =
        |template: &str| provider(&format!("{{kind: VSphereMachineProviderSpec, template: {template}}}"));
    let mut release = new();
    release["architectures"]["x86_64"]["artifacts"]["vmware"] = json!({"release": "9.6.20260217-1", "formats": {"ova": {"disk": {"location": "https://example.com/rhcos-vmware.ova", "sha256": "cc"}}}});
    let case = |template: &str| {
        Case::new(set(template))
            .release(vec![release.clone()])
            .policy(json!({"imageNames": {"vsphere": "new"}}))
            .facts(|f| {
                f.infrastructure_name = Some("c-1".into());
                f.failure_domains = ["east-1a".to_owned()].into();
            })
    };
    for own in [
        "c-1-rhcos",
        "c-1-rhcos-generated-region-generated-zone",
        "c-1-rhcos-east-1a",
        "/dc/vm/c-1/c-1-rhcos",
    ] {
        case(own).is(Reason::InstallerImage);
    }
    for other in ["c-1-rhcos-hardened-by-acme", "/dc/vm/golden/c-1-rhcos", "c-10-rhcos", "x-c-1-rhcos"] {
        case(other).is(Reason::UnknownImage);
    }
}

#[test]
fn a_checksum_keeps_its_kind_and_a_host_in_use_is_left() {
    let url = |version: &str| format!("https://example.com/rhcos-{version}-openstack.x86_64.qcow2.gz");
    let old_url = url("412.86.202402272018-0");
    let provisioning = |url: &str| {
        format!(
            "apiVersion: metal3.io/v1alpha1\nkind: Provisioning\nmetadata: {{name: p}}\nspec:\n  provisioningOSDownloadURL: {url}\n"
        )
    };
    let mut known = old();
    known["architectures"]["x86_64"]["artifacts"]["openstack"]["formats"]["qcow2.gz"]["disk"]["uncompressed-sha256"] =
        json!("oo");
    let case = |text: String| Case::new(text).known(vec![known.clone()]);
    let decision = case(provisioning(&format!("{old_url}?sha256=oo"))).is(Reason::NewerImage);
    assert_eq!(decision.to.reference, Some(format!("{}?sha256=bb", url("9.6.20260217-1"))));
    case(provisioning(&format!("{old_url}?sha256=other"))).is(Reason::NotEditable);
    case(provisioning(&format!("\"{old_url}?x=1&sha256=oo\""))).is(Reason::NotEditable);
    let host = |status: &str| {
        format!(
            "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {{name: h}}\nspec: {{image: {{url: \"{old_url}\", checksum: aa, checksumType: sha256}}}}\n{status}"
        )
    };
    case(host("")).is(Reason::ReadOnly);
    let free = case(host("status: {provisioning: {state: available}}\n")).is(Reason::NewerImage);
    assert!(free.patch.iter().any(|op| op.op == "test"));
}

#[test]
fn the_facts_of_one_cluster_are_not_those_of_another() {
    let template = "apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineSet\nmetadata: {name: s}\nspec: {template: {spec: {infrastructureRef: {kind: AWSMachineTemplate, name: t}}}}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\nmetadata:\n  name: t\nspec:\n  template:\n    spec:\n      ami:\n        id: ami-old-eu\n";
    let decision =
        Case::new(template).facts(|f| f.own_region = Some("us-east-1".into())).is(Reason::NewerImage);
    assert_eq!(decision.to.reference.as_deref(), Some("ami-new-eu"), "the image proves its own region");
    let told = Case::new(template).facts(|f| f.region = Some("us-east-1".into())).is(Reason::NewerImage);
    assert_eq!(
        told.to.reference.as_deref(),
        Some("ami-new-eu"),
        "and goes before a region that is told for all"
    );
    let own = Case::new(aws_set("ami-old-x", "us-east-1").replace("placement: {region: us-east-1}", "x: y"));
    own.facts(|f| f.own_region = Some("us-east-1".into())).is(Reason::NewerImage);
}

#[test]
fn nothing_is_done_while_the_cluster_is_on_its_way() {
    Case::aws("ami-old-x").facts(|f| f.updating_to = Some("4.20.1".into())).is(Reason::ClusterUpdating);
    Case::aws("managed").policy(json!({"deny": ["9.6.20260217-1"]})).is(Reason::Denied);
    let stamped = |stamp: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"releaseVersion": "4.20.0", "MCOReleaseImageVersion": stamp, "stream": new().to_string()}});
    Case::aws("ami-old-x").release(vec![stamped("4.19.9")]).is(Reason::ClusterUpdating);
    Case::aws("ami-old-x").release(vec![stamped("4.20.0")]).is(Reason::NewerImage);
    let mut paused = Case::aws("ami-old-x");
    paused.manifest =
        paused.manifest.replace("labels:", "annotations: {cluster.x-k8s.io/paused: ''}\n  labels:");
    paused.is(Reason::Paused);
    let set = "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineSet\nmetadata: {name: s}\nspec: {clusterName: c, template: {spec: {infrastructureRef: {kind: AWSMachineTemplate, name: t}}}}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\nmetadata:\n  name: t\nspec:\n  template:\n    spec:\n      ami:\n        id: ami-old-x\n";
    let cluster = |paused: bool| {
        format!(
            "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {{name: c}}\nspec: {{paused: {paused}, infrastructureRef: {{kind: AWSCluster, name: other}}}}\n{set}"
        )
    };
    Case::new(cluster(true)).is(Reason::Paused);
    // The infrastructure object need not have the cluster's name.
    let aws = "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: other}\nspec: {region: eu-west-1}\n";
    let decision = Case::new(cluster(false) + aws).is(Reason::WrongPlace);
    assert_eq!(decision.slot.region.as_deref(), Some("eu-west-1"));
}

/// Each obstacle has a next step of its own.
#[test]
fn what_cannot_be_edited_tells_how_it_could_be() {
    let set = provider("{kind: NutanixMachineProviderConfig, image: {type: uuid, uuid: 0-1-2}}");
    let mut release = new();
    release["architectures"]["x86_64"]["artifacts"]["nutanix"] =
        release["architectures"]["x86_64"]["artifacts"]["openstack"].clone();
    let decision = Case::new(set)
        .release(vec![release])
        .policy(json!({"adopt": ["0-1-2"], "imageNames": {"nutanix": "rhcos-new"}}))
        .is(Reason::NotEditable);
    assert_eq!(decision.next.as_deref(), Some("name the image by its name, or change the id by hand"));
}

#[test]
fn a_template_is_created_once_and_never_written_over() {
    let template = |name: &str, size: &str| {
        format!(
            "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachineTemplate\nmetadata:\n  name: {name}\nspec:\n  template:\n    spec:\n      instanceType: {size}\n      ami:\n        id: ami-old-x\n"
        )
    };
    let set = |name: &str, template: &str| {
        format!(
            "---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachineSet\nmetadata:\n  name: {name}\nspec:\n  template:\n    spec:\n      infrastructureRef:\n        kind: AWSMachineTemplate\n        name: {template}\n"
        )
    };
    let case = |text: String| Case::new(text).facts(|f| f.region = Some("us-east-1".into()));
    let text = set("a", "pool-20240101")
        + &set("b", "pool-20240201")
        + &template("pool-20240101", "m5.large")
        + &template("pool-20240201", "m5.4xlarge");
    let plan = case(text).plan();
    let names: Vec<_> = plan.decisions.iter().map(|d| d.creates[0]["metadata"]["name"].clone()).collect();
    assert_ne!(names[0], names[1], "two specifications, two names");
    // The one that an earlier run made is used again.
    let text = set("a", "t") + &template("t", "m5.large");
    let name =
        case(text.clone()).plan().decisions[0].creates[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let again = text + &template(&name, "m5.large").replace("ami-old-x", "ami-new-x");
    let decision = case(again.clone()).plan().decisions.remove(0);
    assert_eq!((decision.reason, decision.creates.len(), decision.changes.len()), (Reason::NewerImage, 0, 1));
    let occupied = again
        .replace("m5.large\n      ami:\n        id: ami-new-x", "m5.huge\n      ami:\n        id: ami-new-x");
    assert_eq!(case(occupied).plan().decisions[0].reason, Reason::NotEditable);
    let missing = case(set("a", "elsewhere")).is(Reason::TemplateMissing);
    assert!(missing.message.contains("not in the input"));
}
