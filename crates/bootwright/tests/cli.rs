//! The binary, as a user runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn examples(name: &str) -> String {
    root().join("examples").join(name).display().to_string()
}

fn bootwright(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bootwright")).args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stderr)))
}

/// A folder with files in it.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// A copy of the examples' fleet.
fn fleet() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(examples("fleet")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

fn inputs() -> [String; 6] {
    let (release, known) = (examples("release"), examples("known"));
    ["--release".into(), release, "--known".into(), known, "--cluster-arch".into(), "x86_64".into()]
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let inputs = inputs();
    let all: Vec<&str> = arguments.iter().copied().chain(inputs.iter().map(String::as_str)).collect();
    bootwright(folder, &all)
}

fn aws(ami: &str) -> String {
    format!(
        "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata: {{name: w}}\nspec:\n  template:\n    spec:\n      providerSpec:\n        value:\n          kind: AWSMachineProviderConfig\n          ami:\n            id: {ami}\n          placement: {{region: us-east-1}}\n"
    )
}

const OLD: &str = "ami-058af1563befa5c0e";
const NEW: &str = "ami-081de8a3a5826a7d1";

#[test]
fn the_examples_plan_is_the_one_that_the_readme_shows() {
    let fleet = fleet();
    let output = run(fleet.path(), &["plan", "."]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for line in stdout.lines().filter(|line| !line.is_empty()) {
        assert!(readme.contains(line), "the README does not show: {line}");
    }
}

#[test]
fn git_shows_only_changed_references_after_apply() {
    let fleet = fleet();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(fleet.path()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    let output = run(fleet.path(), &["apply", "."]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let diff = git(&["diff", "--unified=0"]);
    let changed = |sign: char| -> Vec<String> {
        let lines =
            diff.lines().filter(|l| l.starts_with(sign) && !l.starts_with("+++") && !l.starts_with("---"));
        lines.map(|l| l[1..].trim().to_owned()).collect()
    };
    assert_eq!(
        changed('-'),
        [
            "id: ami-046fe691f52a953f9 # the image of the day the cluster was installed, in 2019",
            "ami: {id: \"ami-0c8d2d0c18312402b\"}",
            "sku: 419-v2",
            "version: 419.6.20250523",
            "image: projects/rhcos-cloud/global/images/rhcos-414-92-202407091253-0-gcp-x86-64",
        ]
    );
    assert_eq!(
        changed('+'),
        [
            "id: ami-081de8a3a5826a7d1 # the image of the day the cluster was installed, in 2019",
            "ami: {id: \"ami-0a869063701e9fec1\"}",
            "sku: 420-v2",
            "version: 9.6.20251015",
            "image: projects/rhcos-cloud/global/images/rhcos-9-6-20260217-1-gcp-x86-64",
        ]
    );
    let again = run(fleet.path(), &["apply", "."]);
    assert!(text(&again.stdout).contains("changed 0 references in 0 files"), "{}", text(&again.stdout));
    assert_eq!(git(&["diff", "--unified=0"]), diff);
}

/// The JSON Patch of the plan, applied by another implementation, gives what `apply` writes.
#[test]
fn the_patch_and_the_edited_file_say_the_same() {
    let fleet = fleet();
    let read = |name: &str| -> Vec<Value> {
        serde_saphyr::from_multiple(&fs::read_to_string(fleet.path().join(name)).unwrap()).unwrap()
    };
    let plan = json_of(&run(fleet.path(), &["plan", ".", "-o", "json"]));
    let mut expected = Vec::new();
    for decision in plan["decisions"].as_array().unwrap().iter().filter(|d| d["action"] == "update") {
        let (file, document) =
            (decision["object"]["file"].as_str().unwrap(), &decision["object"]["document"]);
        let mut object = read(file).remove(usize::try_from(document.as_u64().unwrap()).unwrap());
        let patch: json_patch::Patch = serde_json::from_value(decision["patch"].clone()).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        expected.push((file.to_owned(), document.as_u64().unwrap(), object));
    }
    assert_eq!(expected.len(), 4);
    assert!(run(fleet.path(), &["apply", "."]).status.success());
    for (file, document, object) in expected {
        assert_eq!(read(&file)[usize::try_from(document).unwrap()], object, "{file}");
    }
}

#[test]
fn exit_statuses_tell_scripts_what_to_do() {
    let status = |files: &[(&str, &str)]| {
        let folder = folder(files);
        run(folder.path(), &["plan", ".", "--exit-code"]).status.code()
    };
    assert_eq!(status(&[("a.yaml", &aws(OLD))]), Some(3), "pending");
    assert_eq!(status(&[("a.yaml", &aws(NEW))]), Some(0), "done");
    assert_eq!(status(&[("a.yaml", &aws("ami-mine"))]), Some(4), "unknown");
    assert_eq!(
        status(&[("a.yaml", &aws(OLD)), ("b.yaml", "kind: MachineSet\n a: [\n")]),
        Some(1),
        "unreadable"
    );
    let folder = folder(&[("a.yaml", &aws(OLD))]);
    assert_eq!(run(folder.path(), &["plan", "."]).status.code(), Some(0), "not asked for");
}

#[test]
fn a_broken_manifest_is_told_with_its_place_and_the_others_are_planned() {
    let folder = folder(&[
        ("a.yaml", &aws(OLD)),
        ("b.yaml", "kind: MachineSet\nmetadata: - a\n  b: c\n"),
        ("c.yaml", "not: [machines"),
    ]);
    let output = run(folder.path(), &["plan", ".", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let plan = json_of(&output);
    assert_eq!(plan["decisions"].as_array().unwrap().len(), 1);
    let findings = plan["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "other YAML is passed over: {findings:?}");
    assert_eq!((&findings[0]["file"], &findings[0]["line"]), (&json!("./b.yaml"), &json!(2)));
    let output = run(folder.path(), &["apply", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        fs::read_to_string(folder.path().join("a.yaml")).unwrap().contains(NEW),
        "the others are changed"
    );
}

#[test]
fn a_file_keeps_its_mode_and_a_link_stays_a_link() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = folder(&[("real/a.yaml", &aws(OLD))]);
    let real = folder.path().join("real/a.yaml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    let link = folder.path().join("link.yaml");
    symlink("real/a.yaml", &link).unwrap();
    assert!(run(folder.path(), &["apply", "link.yaml"]).status.success());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&real).unwrap().contains(NEW));
    assert_eq!(fs::read_dir(folder.path().join("real")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_file_that_is_reached_twice_is_changed_once() {
    let folder = folder(&[("a.yaml", &aws(OLD))]);
    let output = run(folder.path(), &["apply", ".", "a.yaml", "./a.yaml"]);
    assert!(text(&output.stdout).contains("changed 1 references in 1 files"), "{}", text(&output.stdout));
}

#[test]
fn dry_run_shows_a_diff_and_changes_nothing() {
    let folder = folder(&[("a.yaml", &aws(OLD))]);
    let output = run(folder.path(), &["apply", "a.yaml", "--dry-run"]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains(&format!("-            id: {OLD}\n+            id: {NEW}\n")), "{stdout}");
    assert_eq!(fs::read_to_string(folder.path().join("a.yaml")).unwrap(), aws(OLD));
}

#[test]
fn manifests_come_from_standard_input_too() {
    let folder = folder(&[]);
    let inputs = inputs();
    let mut child = Command::new(env!("CARGO_BIN_EXE_bootwright"))
        .args(["plan", "-", "-o", "patch"])
        .args(&inputs)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(aws(OLD).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(line["patch"][1]["value"], NEW);
    // The command in front failed: that is no empty cluster.
    let nothing = run(folder.path(), &["plan", "-"]);
    assert!(text(&nothing.stderr).contains("nothing came"), "{}", text(&nothing.stderr));
    assert_eq!(nothing.status.code(), Some(1));
    let refused = run(folder.path(), &["apply", "-"]);
    assert_eq!(refused.status.code(), Some(1));
}

const CLUSTER_API: &str = "# keep
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata:
  name: md
spec:
  clusterName: c
  template:
    spec:
      infrastructureRef:
        kind: AWSMachineTemplate
        name: workers
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachineTemplate
metadata:
  name: workers # the first
spec:
  template:
    spec:
      ami:
        id: ami-058af1563befa5c0e # of 2024
      instanceType: m5.large
";

#[test]
fn an_immutable_template_is_replaced_and_never_edited() {
    let folder =
        folder(&[("a.yaml", CLUSTER_API), ("policy", "mode: Managed\nallowReplaceMachines: true\n")]);
    let arguments = ["apply", "a.yaml", "--region", "us-east-1", "--policy", "policy"];
    let output = run(folder.path(), &arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let new = fs::read_to_string(folder.path().join("a.yaml")).unwrap();
    let name = new
        .lines()
        .find_map(|l| l.trim().strip_prefix("name: workers-"))
        .map(|hash| format!("workers-{hash}"))
        .unwrap();
    let (first, second) = CLUSTER_API.split_once("---\n").unwrap();
    let repointed = first.replace("name: workers", &format!("name: {name}"));
    let created = second.replace("name: workers", &format!("name: {name}")).replace(OLD, NEW);
    assert_eq!(new, format!("{repointed}---\n{second}---\n{created}"));
    assert!(text(&run(folder.path(), &arguments).stdout).contains("changed 0 references"));
    // Without the policy's word nothing is done, and what would be is shown.
    fs::write(folder.path().join("a.yaml"), CLUSTER_API).unwrap();
    let plan = json_of(&run(folder.path(), &["plan", "a.yaml", "--region", "us-east-1", "-o", "json"]));
    assert_eq!(plan["decisions"][0]["reason"], "WouldReplaceMachines");
    assert_eq!(plan["decisions"][0]["creates"][0]["metadata"]["name"], json!(name));
}

/// Trees hold many clusters that name their templates alike.
#[test]
fn each_cluster_of_a_tree_has_its_own_templates_and_region() {
    let cluster = |region: &str, ami: &str| {
        let cluster = format!(
            "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {{name: c}}\nspec: {{region: {region}}}\n"
        );
        CLUSTER_API.replace(OLD, ami) + &cluster
    };
    let folder = folder(&[
        ("a/a.yaml", &cluster("us-east-1", OLD)),
        ("b/a.yaml", &cluster("eu-west-3", "ami-mine")),
        ("policy", "mode: Managed\nallowReplaceMachines: true\n"),
    ]);
    let plan = json_of(&run(folder.path(), &["plan", ".", "--policy", "policy", "-o", "json"]));
    let told: Vec<_> = plan["decisions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| (d["slot"]["region"].clone(), d["reason"].clone()))
        .collect();
    assert_eq!(
        told,
        [(json!("us-east-1"), json!("NewerImage")), (json!("eu-west-3"), json!("UnknownImage"))]
    );
}

#[test]
fn explain_tells_the_chain() {
    let folder = folder(&[("a.yaml", &aws(OLD))]);
    let output = run(folder.path(), &["explain", "machinesets/w", "."]);
    let stdout = text(&output.stdout);
    for part in ["release image", NEW, "414.92.202407091253-0", "us-east-1", "update (NewerImage)"] {
        assert!(stdout.contains(part), "{part} in {stdout}");
    }
    let missing = run(folder.path(), &["explain", "v", "."]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("there is w"), "{}", text(&missing.stderr));
}

#[test]
fn an_index_recognises_what_history_published() {
    let folder = folder(&[(
        "history/rhcos-amd64.json",
        &fs::read_to_string(examples("known/rhcos-4.1-amd64.json")).unwrap(),
    )]);
    let git = |arguments: &[&str]| {
        let status = Command::new("git").args(arguments).current_dir(folder.path().join("history")).status();
        assert!(status.unwrap().success());
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "one"]);
    fs::write(
        folder.path().join("history/rhcos-amd64.json"),
        fs::read_to_string(examples("known/rhcos-4.14.json")).unwrap(),
    )
    .unwrap();
    git(&["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "--all", "-m", "two"]);
    let imported = bootwright(folder.path(), &["release", "import", "--index", "known.index", "git:history"]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let answer = bootwright(
        folder.path(),
        &["identify", "ami-046fe691f52a953f9", "--known", "known.index", "-o", "json"],
    );
    let identity = &json_of(&answer)["items"][0]["identities"][0];
    assert_eq!(
        (&identity["version"], &identity["openshift"], &identity["region"], &identity["architecture"]),
        (&json!("410.8.20190520.0"), &json!("4.1"), &json!("us-east-1"), &json!("x86_64"))
    );
    let again = bootwright(folder.path(), &["release", "import", "--index", "known.index", "git:history"]);
    assert!(text(&again.stdout).contains(", 0 of them new"), "{}", text(&again.stdout));
    let unknown = bootwright(folder.path(), &["identify", "ami-0", "--known", "known.index"]);
    assert_eq!(unknown.status.code(), Some(1));
}

#[test]
fn files_are_identified_by_digest_kind_and_content() {
    let folder = folder(&[
        (
            "aleph.json",
            r#"{"build": "43.81.202001142154.0", "ref": "", "imgid": "rhcos-43.81.202001142154.0-qemu.x86_64.qcow2"}"#,
        ),
        ("disk", "QFI\u{fb} and more"),
    ]);
    let answer = json_of(&bootwright(folder.path(), &["identify", "aleph.json", "-o", "json"]));
    let identity = &answer["items"][0]["identities"][0];
    assert_eq!(
        (&identity["version"], &identity["architecture"], &identity["distribution"]),
        (&json!("43.81.202001142154.0"), &json!("x86_64"), &json!("rhcos"))
    );
    let gz = [0x1f, 0x8b, 8, 0];
    fs::write(folder.path().join("disk"), gz).unwrap();
    let answer = json_of(&bootwright(folder.path(), &["identify", "disk", "-o", "json"]));
    assert_eq!(answer["items"][0]["file"], "gzip data");
    assert_eq!(answer["items"][0]["sha256"].as_str().unwrap().len(), 64);
}

#[test]
fn bad_input_gets_a_clear_error_and_nothing_else() {
    let stream =
        json!({"stream": "stable", "architectures": {"x86_64": {"artifacts": {}, "images": {}}}}).to_string();
    let folder = folder(&[
        ("a.yaml", &aws(OLD)),
        ("bad.json", "{\"architectures\": "),
        ("policy", "mode: managed\n"),
        ("empty/x.txt", ""),
        ("tree/good.json", &stream),
        ("tree/half.json", &stream[..stream.len() / 2]),
    ]);
    let cases: &[(&[&str], &str)] = &[
        (&["plan", "a.yaml", "--release", "missing.json"], "missing.json: cannot be read"),
        (&["plan", "a.yaml", "--release", "bad.json"], "bad.json: not valid JSON"),
        (&["plan", "a.yaml", "--release", "a.yaml"], "no release metadata in it"),
        (&["plan", "a.yaml", "--release", "oci://x"], "this version reads files"),
        // A file that is cut short is no file to pass over.
        (&["plan", "a.yaml", "--release", "tree"], "half.json"),
        (&["release", "diff", "tree", &examples("release")], "half.json"),
        (&["release", "lint", &examples("release"), "--against", "tree"], "half.json"),
        (&["plan", "nowhere", "--release", &examples("release")], "nowhere: cannot be read"),
        (&["plan", "empty", "--release", &examples("release")], "no YAML or JSON files"),
        (
            &["plan", "a.yaml", "--release", &examples("release"), "--policy", "policy"],
            "unknown variant `managed`",
        ),
        (
            &["plan", "a.yaml", "--release", &examples("release"), "--cluster-arch", "x64"],
            "`x64` is not an architecture",
        ),
        (
            &["plan", "a.yaml", "--release", &examples("release"), "--image-name", "aws=x"],
            "no platform with private images",
        ),
    ];
    for (arguments, message) in cases {
        let output = bootwright(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains(message), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty() && !stderr.contains("panicked"), "{arguments:?}");
    }
}

#[test]
fn output_is_plain_where_it_is_no_terminal_and_coloured_where_asked() {
    let folder = folder(&[("a.yaml", &aws(OLD))]);
    assert!(!run(folder.path(), &["plan", "."]).stdout.contains(&0x1b));
    assert!(run(folder.path(), &["plan", ".", "--color", "always"]).stdout.contains(&0x1b));
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let many: String = (0..4000).map(|_| aws(OLD) + "---\n").collect();
    let folder = folder(&[("a.yaml", &many)]);
    let inputs = inputs().join(" ");
    let line = format!("{} plan a.yaml {inputs} -o wide | head -n 1", env!("CARGO_BIN_EXE_bootwright"));
    let output = Command::new("bash")
        .args(["-o", "pipefail", "-c", &line])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
