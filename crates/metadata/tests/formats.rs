//! Every format, in small: what is read, and that nothing is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use metadata::{Architecture, Catalog, Distribution, Document, Format, ImageReference, LintRule};
use proptest::prelude::*;
use serde_json::{Value, json};

fn catalog(name: &str, value: &Value) -> Catalog {
    let document = Document::parse(name, value.to_string().as_bytes()).unwrap();
    let mut catalog = Catalog::new();
    catalog.add(&document, None);
    catalog
}

fn stream(version: &str, region: &str, ami: &str) -> Value {
    json!({"stream": "rhcos-4.20", "metadata": {"last-modified": "2026-03-04T15:09:24Z"}, "architectures": {"x86_64": {
        "artifacts": {"openstack": {"release": version, "formats": {"qcow2.gz": {"disk": {
            "location": format!("https://example.com/rhcos-{version}-openstack.x86_64.qcow2.gz"),
            "sha256": "aa", "uncompressed-sha256": "bb"}}}}},
        "images": {"aws": {"regions": {region: {"release": version, "image": ami}}}}}}})
}

#[test]
fn a_stream_tells_its_os_stream_by_content() {
    let catalog = catalog("any-name.json", &stream("9.6.20260217-1", "us-east-1", "ami-1"));
    let source = &catalog.sources[0];
    assert_eq!((source.format, source.distribution), (Format::Stream, Distribution::Rhcos));
    assert_eq!(source.os_stream.as_deref(), Some("rhel-9"));
    assert_eq!(catalog.images[0].region.as_deref(), Some("us-east-1"));
    assert!(catalog.artifacts[0].has_usable_location());
    assert!(catalog.problems.is_empty());
}

#[test]
fn sizes_are_strings_or_numbers_and_the_old_form_has_a_base() {
    let legacy = json!({"baseURI": "https://example.com/410/", "buildid": "410.8.20190520.0", "ostree-version": "410.8.20190520.0",
        "amis": {"us-east-1": {"hvm": "ami-046fe691f52a953f9"}},
        "images": {"aws": {"path": "rhcos-410.8.20190520.0-aws.vmdk", "sha256": "aa", "size": "709180655", "uncompressed-size": 742_703_616},
                   "kernel": {"path": "rhcos-410.8.20190520.0-installer-kernel", "sha256": "cc"}}});
    let catalog = catalog("rhcos.json", &legacy);
    assert_eq!(catalog.artifacts[0].size, Some(709_180_655));
    assert_eq!(catalog.artifacts[0].uncompressed_size, Some(742_703_616));
    assert_eq!(catalog.artifacts[0].location, "https://example.com/410/rhcos-410.8.20190520.0-aws.vmdk");
    // Before October 2019 there was one architecture, and no name tells it.
    assert_eq!(catalog.images[0].architecture, Some(Architecture::X86_64));
    assert!(catalog.problems.is_empty(), "{:?}", catalog.problems);
}

#[test]
fn amis_are_a_list_a_map_or_absent() {
    let meta = |amis: Value| json!({"buildid": "44.81.202001241431.0", "coreos-assembler.basearch": "s390x", "images": {}, "amis": amis});
    let list =
        catalog("meta.json", &meta(json!([{"name": "us-east-1", "hvm": "ami-1", "snapshot": "snap-1"}])));
    assert_eq!(list.identify("ami-1")[0].region.as_deref(), Some("us-east-1"));
    let map = catalog("meta.json", &meta(json!({"us-east-1": {"hvm": "ami-1"}})));
    assert_eq!(map.identify("ami-1")[0].architecture, Some(Architecture::S390x));
    for nothing in [json!(null), json!([]), json!({})] {
        assert!(catalog("meta.json", &meta(nothing)).images.is_empty());
    }
}

#[test]
fn a_gcp_image_without_project_invents_no_path() {
    let legacy = json!({"baseURI": "https://example.com/", "buildid": "42.80.20191002.0", "images": {},
        "gcp": {"image": "rhcos-42-80-20191002-0", "url": "https://storage.googleapis.com/rhcos/rhcos/42.80.20191002.0.tar.gz"}});
    let catalog = catalog("rhcos-amd64.json", &legacy);
    assert_eq!(catalog.images[0].reference.text(), "rhcos-42-80-20191002-0");
    assert!(matches!(&catalog.images[0].reference, ImageReference::Gcp { project: None, url: Some(_), .. }));
}

#[test]
fn a_config_map_names_streams_and_the_default_among_them() {
    let nine = stream("9.8.20260403-0", "us-east-1", "ami-9").to_string();
    let ten =
        stream("10.2.20260405-0", "us-east-1", "ami-10").to_string().replace("rhcos-4.20", "rhcos-4.22");
    let streams = format!(r#"{{"rhel-9": {nine}, "rhel-10": {ten}}}"#);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data":
        {"stream": nine, "streams": streams, "releaseVersion": "5.0.0-ec.2"}});
    let catalog = catalog("cm.yaml", &map);
    let said: Vec<_> = catalog.sources.iter().map(|s| (s.os_stream.as_deref(), s.default)).collect();
    assert_eq!(said, [(Some("rhel-9"), true), (Some("rhel-10"), false)]);
    assert_eq!(catalog.identify("ami-10")[0].openshift.as_deref(), Some("5.0.0-ec.2"));
}

#[test]
fn what_has_the_wrong_type_is_told_and_passed_over() {
    let odd = json!({"architectures": {"x86_64": {
        "artifacts": {"metal": {"release": 7, "formats": {"iso": {"disk": "gone"}, "raw.gz": []}}, "qemu": "none"},
        "images": {"aws": {"regions": {"us-east-1": {"release": "9.6", "image": 5}}}, "gcp": null}}, "s390x": {"images": {}}}});
    let catalog = catalog("odd.json", &odd);
    assert!(catalog.images.is_empty());
    let paths: Vec<&str> = catalog.problems.iter().map(|p| p.path.as_str()).collect();
    assert!(paths.contains(&"architectures.x86_64.artifacts.metal.release"), "{paths:?}");
    assert!(paths.contains(&"architectures.x86_64.images.aws.regions.us-east-1.image"), "{paths:?}");
}

#[test]
fn the_linter_knows_the_faults_of_real_files() {
    let mut two = catalog("a.json", &stream("9.6.20260217-1", "us-east-1", "ami-1"));
    let mut other = stream("9.6.20260217-1", "us-east-1", "ami-1");
    other["architectures"]["x86_64"]["artifacts"]["openstack"]["formats"]["qcow2.gz"]["disk"]["sha256"] =
        json!("ff");
    two.append(catalog("b.json", &other));
    let rules = |c: &Catalog| metadata::lint(c, None).into_iter().map(|l| l.rule).collect::<Vec<_>>();
    assert!(rules(&two).contains(&LintRule::SameVersionOtherDigest));

    let mut behind = stream("9.6.20260217-1", "us-east-1", "ami-1");
    behind["architectures"]["x86_64"]["images"]["aws"]["regions"]["me-central-1"] =
        json!({"release": "9.6.20260112-0", "image": "ami-2"});
    behind["architectures"]["x86_64"]["artifacts"]["openstack"]["formats"]["qcow2.gz"]["disk"] =
        json!({"location": "<not-used>"});
    let found = rules(&catalog("c.json", &behind));
    for rule in [LintRule::RegionBehind, LintRule::UnusableLocation, LintRule::MissingChecksum] {
        assert!(found.contains(&rule), "{rule:?} in {found:?}");
    }

    let mut reused = stream("9.6.20260217-1", "us-east-1", "ami-1");
    reused["architectures"]["x86_64"]["images"]["aws"]["regions"]["eu-west-1"] =
        json!({"release": "9.6.20260217-1", "image": "ami-1"});
    assert!(rules(&catalog("d.json", &reused)).contains(&LintRule::ImageIdReused));

    let lost = metadata::lint(
        &catalog("new.json", &json!({"architectures": {"x86_64": {}}})),
        Some(&catalog("old.json", &stream("9.6.20260217-1", "us-east-1", "ami-1"))),
    );
    assert_eq!(lost.iter().filter(|l| l.rule == LintRule::MissingAgainst).count(), 2);

    let named = catalog("e.json", &stream("418.94.202602022246-0", "us-east-1", "ami-1"));
    assert!(rules(&named).contains(&LintRule::StreamNameContradicts));
}

#[test]
fn an_index_keeps_what_recognition_needs() {
    let mut all = catalog("a.json", &stream("9.6.20260217-1", "us-east-1", "ami-1"));
    all.append(catalog("again.json", &stream("9.6.20260217-1", "us-east-1", "ami-1")));
    let text = metadata::write_index(&all);
    assert_eq!(text.matches("ami-1").count(), 1, "said once: {text}");
    let read = metadata::read_index(&text).unwrap();
    let identity = &read.identify("ami-1")[0];
    assert_eq!(identity.version.as_deref(), Some("9.6.20260217-1"));
    assert_eq!(identity.source.as_deref(), Some("a.json"));
    assert_eq!(read.identify("BB"), [], "digests are whole");
    assert_eq!(metadata::write_index(&read), text);
}

#[test]
fn an_index_of_a_later_program_and_a_damaged_one_are_told_apart() {
    use metadata::IndexError;
    let error = |text: &str| metadata::read_index(text).unwrap_err();
    assert_eq!(error("{}"), IndexError::NotIndex);
    assert!(matches!(error("bootwright-index\t2\n"), IndexError::Generation { .. }));
    assert!(matches!(error("bootwright-index\t1\nid\taws\n"), IndexError::Damaged { line: 2, .. }));
    assert!(metadata::read_index("bootwright-index\t1\nlater\tx\n").unwrap().images.is_empty());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z0-9.-]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-z0-9-]{1,8}", inner, 0..5).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn unknown_fields_survive_a_round_trip(extra in any_json(), deep in any_json()) {
        let mut value = stream("9.6.20260217-1", "us-east-1", "ami-1");
        value["x-unknown"] = extra;
        value["architectures"]["x86_64"]["images"]["aws"]["x-unknown"] = deep;
        let document = Document::parse("x", value.to_string().as_bytes()).unwrap();
        prop_assert_eq!(&document.parts()[0].value, &value);
    }

    #[test]
    fn no_shape_of_the_fields_panics(artifacts in any_json(), images in any_json(), extensions in any_json()) {
        let value = json!({"architectures": {"x86_64":
            {"artifacts": artifacts, "images": images, "rhel-coreos-extensions": extensions}}});
        let read = catalog("x", &value);
        let index = metadata::write_index(&read);
        prop_assert_eq!(metadata::write_index(&metadata::read_index(&index).unwrap()), index);
        metadata::lint(&read, Some(&read));
        metadata::diff(&read, &Catalog::new());
    }

    #[test]
    fn no_shape_of_meta_json_panics(images in any_json(), amis in any_json(), gcp in any_json(), pkgdiff in any_json()) {
        let value = json!({"buildid": "44.81.202001241431.0", "images": {"qemu": images}, "amis": amis, "gcp": gcp,
            "azure": gcp, "powervs": amis, "kubevirt": gcp, "pkgdiff": pkgdiff});
        catalog("x", &value);
    }
}
