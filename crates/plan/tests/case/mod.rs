//! One machine set, one question: a case with defaults that a test changes.

use std::sync::Arc;

use jiff::Timestamp;
use machines::{Inventory, Slot, tree};
use metadata::{Catalog, Document};
use plan::{ClusterArchitecture, Decision, Facts, Inputs, Plan, Planner, Policy, Reason, check};
use serde_json::{Value, json};

/// A release with one image in each place that is asked for.
pub(crate) fn stream(version: &str, aws: &[(&str, &str, &str)], gcp: &str) -> Value {
    let mut architectures = json!({});
    let distribution = if gcp.starts_with("fedora") { "fedora-coreos" } else { "rhcos" };
    for (arch, region, ami) in aws {
        architectures[arch]["images"]["aws"]["regions"][region] = json!({"release": version, "image": ami});
    }
    architectures["x86_64"]["images"]["gcp"] =
        json!({"release": version, "project": "rhcos-cloud", "name": gcp});
    architectures["x86_64"]["artifacts"]["openstack"] = json!({"release": version, "formats": {"qcow2.gz": {"disk":
        {"location": format!("https://example.com/{distribution}-{version}-openstack.x86_64.qcow2.gz"), "sha256": "aa", "uncompressed-sha256": "bb"}}}});
    json!({"stream": "s", "architectures": architectures})
}

pub(crate) fn new() -> Value {
    let aws = [
        ("x86_64", "us-east-1", "ami-new-x"),
        ("aarch64", "us-east-1", "ami-new-a"),
        ("x86_64", "eu-west-1", "ami-new-eu"),
    ];
    stream("9.6.20260217-1", &aws, "rhcos-new")
}

pub(crate) fn old() -> Value {
    let aws = [
        ("x86_64", "us-east-1", "ami-old-x"),
        ("aarch64", "us-east-1", "ami-old-a"),
        ("x86_64", "eu-west-1", "ami-old-eu"),
    ];
    stream("412.86.202402272018-0", &aws, "rhcos-old")
}

pub(crate) fn catalog(documents: &[Value]) -> Catalog {
    let mut catalog = Catalog::new();
    for (n, value) in documents.iter().enumerate() {
        let document = Document::parse(&format!("{n}.json"), value.to_string().as_bytes()).unwrap();
        catalog.add(&document, None);
    }
    catalog
}

pub(crate) struct Case {
    pub(crate) release: Vec<Value>,
    pub(crate) known: Vec<Value>,
    pub(crate) policy: Value,
    pub(crate) facts: Facts,
    pub(crate) manifest: String,
}

impl Case {
    pub(crate) fn new(manifest: impl Into<String>) -> Self {
        let facts =
            Facts { architecture: Some(ClusterArchitecture::Single("x86_64".into())), ..Facts::default() };
        Self {
            release: vec![new()],
            known: vec![old()],
            policy: json!({"mode": "Managed"}),
            facts,
            manifest: manifest.into(),
        }
    }

    pub(crate) fn aws(ami: &str) -> Self {
        Self::new(aws_set(ami, "us-east-1"))
    }

    pub(crate) fn policy(mut self, policy: Value) -> Self {
        self.policy = policy;
        self.policy["mode"] = self.policy.get("mode").cloned().unwrap_or(json!("Managed"));
        self
    }

    pub(crate) fn release(mut self, release: Vec<Value>) -> Self {
        self.release = release;
        self
    }

    pub(crate) fn known(mut self, known: Vec<Value>) -> Self {
        self.known = known;
        self
    }

    pub(crate) fn facts(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        change(&mut self.facts);
        self
    }

    pub(crate) fn slots(&self) -> Vec<Slot> {
        let file: Arc<str> = "m.yaml".into();
        let mut inventory = Inventory::new();
        tree::documents(&self.manifest, |d| inventory.add(&file, &d.unwrap()));
        inventory.finish()
    }

    pub(crate) fn plan(&self) -> Plan {
        let (release, known) = (catalog(&self.release), catalog(&self.known));
        let policy = Policy::read(&self.policy).unwrap();
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        let inputs = Inputs { release: &release, known: &known, policy: &policy, facts: &self.facts, now };
        let slots = self.slots();
        let plan = Planner::new(inputs).plan(&slots);
        assert_eq!(check(&plan, &slots, &inputs), []);
        plan
    }

    pub(crate) fn decision(&self) -> Decision {
        let mut plan = self.plan();
        assert_eq!(plan.decisions.len(), 1);
        plan.decisions.remove(0)
    }

    pub(crate) fn is(&self, reason: Reason) -> Decision {
        let decision = self.decision();
        assert_eq!(decision.reason, reason, "{}", decision.message);
        decision
    }
}

pub(crate) fn aws_set(ami: &str, region: &str) -> String {
    format!(
        "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata:\n  name: w\n  labels: {{tier: web}}\nspec:\n  template:\n    spec:\n      providerSpec:\n        value:\n          kind: AWSMachineProviderConfig\n          ami:\n            id: {ami}\n          placement: {{region: {region}}}\n"
    )
}

pub(crate) fn provider(text: &str) -> String {
    format!(
        "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata: {{name: w}}\nspec: {{template: {{spec: {{providerSpec: {{value: {text}}}}}}}}}\n"
    )
}
