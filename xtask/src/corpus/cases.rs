//! The cases: each asks the binary what a user would ask, and compares with the answer.

use std::fs;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use super::{Corpus, word};

pub(crate) fn run(corpus: &Corpus, case: &Value) -> anyhow::Result<()> {
    let (args, expect) = (&case["args"], &case["expect"]);
    match args["query"].as_str() {
        None => manifests(corpus, case),
        Some("parse") => versions(corpus, expect),
        Some("aleph") => alephs(corpus, expect),
        Some("pxe") => network_boot(corpus, expect),
        Some(_) => published(corpus, case),
    }
}

fn text(value: &Value) -> anyhow::Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("expected a text, found {value}"))
}

fn same(what: &str, found: &Value, expected: &Value) -> anyhow::Result<()> {
    ensure!(found == expected, "{what}: found {found}, expected {expected}");
    Ok(())
}

/// `plan` on a manifest, then `apply` on a copy of it.
fn manifests(corpus: &Corpus, case: &Value) -> anyhow::Result<()> {
    let (args, expect) = (&case["args"], &case["expect"]);
    let manifest =
        args["machineset"].as_str().or_else(|| args["machinedeployment"].as_str()).context("no manifest")?;
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("manifest.yaml");
    fs::copy(corpus.path(manifest), &copy)?;
    let mut common = vec![word(&copy), "--release".to_owned(), word(&corpus.path(&text(&args["target"])?))];
    for known in args["history"].as_array().into_iter().flatten() {
        common.extend(["--known".to_owned(), word(&corpus.path(&text(known)?))]);
    }
    for (key, flag) in [
        ("cluster_arch", "--cluster-arch"),
        ("infrastructure_name", "--infrastructure-name"),
        ("region", "--region"),
    ] {
        if let Some(value) = args[key].as_str() {
            common.extend([flag.to_owned(), value.to_owned()]);
        }
    }
    let replaces =
        expect.get("create").is_some() || expect.get("warning").is_some_and(|w| *w != "region-behind");
    let mut policy = json!({"mode": "Managed"});
    if let Some(limit) = args.get("skew_limit") {
        policy["skew"] = json!({"minimum": {"openshift": limit["ocp"], "rhel": limit["rhel"]}});
    }
    if replaces {
        // What replaces running machines is refused, until the policy allows it.
        let plan = plan(corpus, &common)?;
        let decision = only(&plan)?;
        same("action without the policy's word", &decision["action"], &json!("refuse"))?;
        same("reason without the policy's word", &decision["reason"], &json!("WouldReplaceMachines"))?;
        policy["allowReplaceMachines"] = json!(true);
    }
    let policy_file = folder.path().join("policy");
    fs::write(&policy_file, policy.to_string())?;
    common.extend(["--policy".to_owned(), word(&policy_file)]);

    let plan = plan(corpus, &common)?;
    if let Some(results) = expect["results"].as_array() {
        let decisions = plan["decisions"].as_array().context("no decisions")?;
        ensure!(
            decisions.len() == results.len(),
            "{} decisions, expected {}",
            decisions.len(),
            results.len()
        );
        for (decision, result) in decisions.iter().zip(results) {
            same("name", &decision["object"]["name"], &result["name"])?;
            decision_is(decision, result)?;
        }
    } else {
        decision_is(only(&plan)?, expect)?;
    }
    findings(&plan, expect)?;
    for forbidden in expect["must_not_use"].as_array().into_iter().flatten() {
        let used =
            plan["decisions"].as_array().into_iter().flatten().any(|d| d["to"]["reference"] == *forbidden);
        ensure!(!used, "{forbidden} must not be used");
    }
    applied(corpus, &common, &plan, &fs::read_to_string(corpus.path(manifest))?, &copy)
}

fn plan(corpus: &Corpus, common: &[String]) -> anyhow::Result<Value> {
    let mut arguments = vec!["plan".to_owned()];
    arguments.extend_from_slice(common);
    arguments.extend(["-o".to_owned(), "json".to_owned()]);
    corpus.json(&arguments)
}

fn only(plan: &Value) -> anyhow::Result<&Value> {
    match plan["decisions"].as_array().map(Vec::as_slice) {
        Some([decision]) => Ok(decision),
        other => bail!("expected one decision, found {}", other.map_or(0, <[_]>::len)),
    }
}

/// The corpus's words for actions and reasons.
fn decision_is(decision: &Value, expect: &Value) -> anyhow::Result<()> {
    let action = decision["action"].as_str().unwrap_or_default();
    let is = match action {
        "update" => "patch",
        "current" => "none",
        _ => "leave",
    };
    if let Some(expected) = expect["action"].as_str() {
        ensure!(is == expected, "action {action} ({}): {}", decision["reason"], decision["message"]);
    }
    if let Some(reason) = expect["reason"].as_str() {
        let code = match reason {
            "unknown-image" => "UnknownImage",
            "no-image-for-region" => "NoImageForRegion",
            "no-ami-id" => "NoImageId",
            "owned" => "OwnedByController",
            "not-coreos" => "NotCoreOS",
            "security-type" => "SecurityType",
            other => bail!("no code is known for the reason {other}"),
        };
        same("reason", &decision["reason"], &json!(code))?;
    }
    let pairs = [
        ("release", "/to/version"),
        ("current", "/from/reference"),
        ("current_release", "/from/version"),
        ("arch", "/slot/architecture"),
        ("region", "/slot/region"),
        ("stream", "/slot/osStream"),
        ("arch_release", "/skew/release"),
        ("counts_for_skew", "/skew/counts"),
        ("skew", "/skew/state"),
        ("skew_before", "/skew/state"),
    ];
    for (key, pointer) in pairs {
        if let Some(expected) = expect.get(key) {
            same(key, decision.pointer(pointer).unwrap_or(&Value::Null), expected)?;
        }
    }
    if expect.get("skew_after").is_some() {
        same("skew afterwards", &decision["skew"]["after"], &json!("current"))?;
    }
    if let Some(image) = expect.get("image") {
        same("image", &decision["to"]["reference"], image)?;
    }
    if let Some(path) = expect["path"].as_str() {
        let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
        same("path", &decision["slot"]["pointer"], &json!(pointer))?;
    }
    let operations = decision["patch"].as_array().cloned().unwrap_or_default();
    let set = |path: &str| {
        let mut writes = operations.iter().filter(|op| op["op"] != "test");
        writes.find(|op| op["path"] == path).map(|op| op["value"].clone())
    };
    if let Some(merge) = expect.get("merge_patch") {
        let mut leaves = Vec::new();
        collect(merge, String::new(), &mut leaves);
        ensure!(operations.len() == 2 * leaves.len(), "the patch sends other fields: {operations:?}");
        for (path, value) in leaves {
            same("patch", &set(&path).unwrap_or_default(), &value)?;
        }
    }
    if let Some(object) = expect["image_object"].as_object() {
        for (key, value) in object {
            let path = format!("{}/{key}", decision["slot"]["pointer"].as_str().unwrap_or_default());
            same(key, &set(&path).unwrap_or_default(), value)?;
        }
    }
    if let Some(create) = expect.get("create") {
        let created = &decision["creates"][0];
        same("kind", &created["kind"], &create["kind"])?;
        same(
            "image",
            &created["spec"]["template"]["spec"]["ami"]["id"],
            &create["spec_template_spec_ami_id"],
        )?;
        let path = format!("/{}", text(&expect["repoint"]["path"])?.replace('.', "/"));
        same("repointed kind", &decision["object"]["kind"], &expect["repoint"]["kind"])?;
        same("repointed name", &set(&path).unwrap_or_default(), &created["metadata"]["name"])?;
    }
    Ok(())
}

fn collect(value: &Value, path: String, leaves: &mut Vec<(String, Value)>) {
    match value.as_object() {
        Some(map) => {
            for (key, value) in map {
                collect(value, format!("{path}/{key}"), leaves);
            }
        }
        None => leaves.push((path, value.clone())),
    }
}

fn findings(plan: &Value, expect: &Value) -> anyhow::Result<()> {
    let has = |reason: &str, words: &[&Value]| {
        let ok = plan["findings"].as_array().into_iter().flatten().any(|finding| {
            let message = finding["message"].as_str().unwrap_or_default();
            finding["reason"] == reason
                && words.iter().all(|w| message.contains(w.as_str().unwrap_or_default()))
        });
        ensure!(ok, "no finding {reason} with {words:?}");
        Ok(())
    };
    if let Some(finding) = expect.get("finding") {
        match finding["kind"].as_str() {
            Some("image-of-other-region") => {
                has("ImageOfOtherRegion", &[&finding["image"], &finding["region"]])?;
            }
            Some("image-of-other-arch") => {
                has(
                    "ImageOfOtherArchitecture",
                    &[&finding["image"], &finding["image_arch"], &finding["machineset_arch"]],
                )?;
            }
            other => bail!("no finding is known for {other:?}"),
        }
    }
    if expect["warning"] == "region-behind" {
        has("RegionBehind", &[])?;
    }
    Ok(())
}

/// `apply` changes the references of the plan and nothing else; a second one changes nothing.
fn applied(
    corpus: &Corpus,
    common: &[String],
    plan: &Value,
    before: &str,
    copy: &std::path::Path,
) -> anyhow::Result<()> {
    let mut arguments = vec!["apply".to_owned()];
    arguments.extend_from_slice(common);
    let output = corpus.output(&arguments)?;
    ensure!(output.status.success(), "apply failed: {}", crate::run::text(&output).1);
    let after = fs::read_to_string(copy)?;
    let updates = plan["decisions"].as_array().into_iter().flatten().filter(|d| d["action"] == "update");
    let (mut replaced, mut added, mut creates) = (0, 0, 0);
    for decision in updates {
        for operation in decision["patch"].as_array().into_iter().flatten() {
            replaced += usize::from(operation["op"] == "replace");
            added += usize::from(operation["op"] == "add");
        }
        creates += decision["creates"].as_array().map_or(0, Vec::len);
    }
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let gone = old.iter().filter(|line| !new.contains(line)).count();
    ensure!(gone <= replaced, "{gone} lines were lost, {replaced} references replaced");
    if creates == 0 {
        ensure!(new.len() == old.len() + added, "{} lines became {}", old.len(), new.len());
    } else {
        ensure!(
            after.starts_with(before.split("capa-image-id-example").next().unwrap_or_default()),
            "the old template changed"
        );
    }
    if before == after {
        ensure!(replaced + added == 0, "the plan's changes were not written");
    }
    let output = corpus.output(&arguments)?;
    let (stdout, _) = crate::run::text(&output);
    ensure!(fs::read_to_string(copy)? == after, "a second apply changed the file again");
    ensure!(stdout.contains("changed 0 references"), "a second apply found something to do: {stdout}");
    Ok(())
}

fn show(corpus: &Corpus, file: &str, filters: &[&str]) -> anyhow::Result<Value> {
    let mut arguments = vec!["release".to_owned(), "show".to_owned(), word(&corpus.path(file))];
    arguments.extend(filters.iter().map(|f| (*f).to_owned()));
    arguments.extend(["-o".to_owned(), "json".to_owned()]);
    corpus.json(&arguments)
}

/// `release show` answers what metadata publishes.
fn published(corpus: &Corpus, case: &Value) -> anyhow::Result<()> {
    let expect = &case["expect"];
    let files: Vec<&str> = case["files"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let first = files.first().copied().context("no file")?;
    let aws = |file: &str, filters: &[&str], expected: &Value| -> anyhow::Result<()> {
        let mut words = vec!["--platform", "aws"];
        words.extend_from_slice(filters);
        let shown = show(corpus, file, &words)?;
        same("AMI", &shown["images"][0]["reference"], &expected["image"])?;
        if expected["image"].is_null() {
            ensure!(shown["images"] == json!([]), "an image where none is published");
        } else {
            same("version", &shown["images"][0]["version"], &expected["release"])?;
        }
        Ok(())
    };
    match case["id"].as_str().unwrap_or_default() {
        "BI-05" => {
            let filters = ["--arch", "aarch64", "--region", "us-east-1"];
            aws(first, &filters, &expect["legacy"])?;
            aws(files.get(1).context("no second file")?, &filters, &expect["stream"])
        }
        "BI-06" => {
            for (file, key) in files.iter().zip(["4.2", "4.6"]) {
                let shown = show(corpus, file, &["--platform", "gcp", "--arch", "x86_64"])?;
                let (image, expected) = (&shown["images"][0]["image"], &expect[key]);
                same("name", &image["name"], &expected["name"])?;
                same("project", &image["project"], &expected["project"])?;
                if let Some(url) = expected.get("url") {
                    same("url", &image["url"], url)?;
                }
                let reference = expected.get("path").unwrap_or(&expected["name"]);
                same("reference", &shown["images"][0]["reference"], reference)?;
            }
            Ok(())
        }
        "BI-26" => {
            let shown =
                show(corpus, first, &["--platform", "vmware", "--format", "ova", "--arch", "x86_64"])?;
            let found = &shown["artifacts"][0];
            same("url", &found["location"], &expect["url"])?;
            same("sha256", &found["sha256"], &expect["sha256"])?;
            same("uncompressed sha256", &found["uncompressedSha256"], &expect["uncompressed_sha256"])?;
            same("version", &found["version"], &expect["release"])
        }
        "BI-28" => {
            let shown =
                show(corpus, first, &["--platform", "powervs", "--arch", "ppc64le", "--region", "us-south"])?;
            let found = &shown["images"][0];
            same("version", &found["version"], &expect["release"])?;
            for key in ["object", "bucket", "url"] {
                same(key, &found["image"][key], &expect[key])?;
            }
            Ok(())
        }
        "BI-30" => {
            aws(first, &["--arch", "x86_64", "--region", "us-east-1"], &expect["aws"])?;
            let shown = show(corpus, first, &["--platform", "openstack", "--format", "qcow2.xz"])?;
            for key in ["location", "signature", "sha256"] {
                same(key, &shown["artifacts"][0][key], &expect["openstack"]["qcow2.xz"][key])?;
            }
            Ok(())
        }
        "BI-37" => {
            aws(first, &["--arch", "x86_64", "--region", "us-east-1"], &expect["aws"])?;
            let shown = show(corpus, first, &["--platform", "metal", "--format", "iso"])?;
            same("sha256", &shown["artifacts"][0]["sha256"], &expect["iso_sha256"])?;
            same("usable", &shown["artifacts"][0]["usable"], &expect["iso_url_valid"])
        }
        "BI-38" => {
            let region =
                |platform, region| show(corpus, first, &["--platform", platform, "--region", region]);
            let aws = region("aws", "eu-north-1")?;
            same("AMI", &aws["images"][0]["reference"], &expect["aws_eu_north_1"])?;
            same("architecture", &aws["images"][0]["architecture"], &expect["arch"])?;
            let aliyun = region("aliyun", "cn-shanghai")?;
            same("Alibaba", &aliyun["images"][0]["reference"], &expect["aliyun_cn_shanghai"])?;
            let gcp = show(corpus, first, &["--platform", "gcp"])?;
            same("GCP", &gcp["images"][0]["image"]["name"], &expect["gcp_name"])?;
            let iso = show(corpus, first, &["--format", "installer.iso"])?;
            same("size", &iso["artifacts"][0]["size"], &expect["iso_size"])?;
            let known = identify(corpus, &[text(&expect["aws_eu_north_1"])?], Some(first))?;
            same("OpenShift", &known["items"][0]["identities"][0]["openshift"], &expect["ocp_minor"])
        }
        other => bail!("no question is known for {other}"),
    }
}

fn network_boot(corpus: &Corpus, expect: &Value) -> anyhow::Result<()> {
    let parts =
        |file, arch, format| show(corpus, file, &["--platform", "metal", "--arch", arch, "--format", format]);
    let part = |shown: &Value, name: &str| {
        let mut all = shown["artifacts"].as_array().cloned().unwrap_or_default();
        all.retain(|a| a["part"] == name);
        all.first().cloned().unwrap_or_default()
    };
    let new = parts("installer/rhcos-4.16.json", "aarch64", "pxe")?;
    for name in ["kernel", "initramfs", "rootfs"] {
        let expected = &expect["4.16-aarch64"][name];
        same(name, &part(&new, name)["location"], &expected["url"])?;
        same(name, &part(&new, name)["sha256"], &expected["sha256"])?;
    }
    let old = parts("installer/rhcos-4.5-amd64.json", "x86_64", "installer-pxe")?;
    for name in ["kernel", "initramfs", "rootfs"] {
        same(name, &part(&old, name)["location"], &expect["4.5-x86_64"][name])?;
    }
    let metal = parts("installer/rhcos-4.5-amd64.json", "x86_64", "raw.gz")?;
    same("metal", &part(&metal, "disk")["location"], &expect["4.5-x86_64"]["metal"])
}

fn identify(corpus: &Corpus, what: &[String], known: Option<&str>) -> anyhow::Result<Value> {
    let mut arguments = vec!["identify".to_owned()];
    arguments.extend_from_slice(what);
    if let Some(known) = known {
        arguments.extend(["--known".to_owned(), word(&corpus.path(known))]);
    }
    arguments.extend(["-o".to_owned(), "json".to_owned()]);
    corpus.json(&arguments)
}

fn versions(corpus: &Corpus, expect: &Value) -> anyhow::Result<()> {
    for (version, meaning) in expect["parsed"].as_object().context("no versions")? {
        let found = identify(corpus, std::slice::from_ref(version), None)?;
        let found = &found["items"][0]["identities"][0];
        same(&format!("OpenShift of {version}"), &found["openshift"], &meaning["ocp"])?;
        same(&format!("RHEL of {version}"), &found["rhel"], &meaning["rhel"])?;
    }
    let ascending: Vec<String> = expect["ascending"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|v| v.as_str().map(str::to_owned))
        .collect();
    // Every pair, not neighbours alone.
    for (n, a) in ascending.iter().enumerate() {
        for b in ascending.iter().skip(n + 1) {
            let order = identify(corpus, &[a.clone(), b.clone()], None)?;
            same(&format!("{a} against {b}"), &order["order"][0]["relation"], &json!("older"))?;
        }
    }
    Ok(())
}

fn alephs(corpus: &Corpus, expect: &Value) -> anyhow::Result<()> {
    for (file, expected) in expect.as_object().context("no files")? {
        let found = identify(corpus, &[word(&corpus.path(&format!("aleph/{file}")))], None)?;
        let found = &found["items"][0]["identities"][0];
        same(&format!("version in {file}"), &found["version"], &expected["version"])?;
        same(&format!("architecture in {file}"), &found["architecture"], &expected["arch"])?;
    }
    Ok(())
}
