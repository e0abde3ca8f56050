//! The invariants, over generated releases, machine sets and policies; and that the linter for plans sees a plan that
//! breaks one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;

use jiff::Timestamp;
use machines::{Inventory, Slot, tree};
use metadata::{Catalog, Document, OsVersion};
use plan::{Action, ClusterArchitecture, Facts, Inputs, Plan, Planner, Policy, Reason, SkewState, check};
use proptest::prelude::*;
use serde_json::{Value, json};

const REGIONS: [&str; 3] = ["us-east-1", "eu-west-1", "me-central-1"];
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];
const VERSIONS: [&str; 7] = [
    "46.82.202011260640-0",
    "412.86.202402272018-0",
    "418.94.202602022246-0",
    "9.6.20251212-1",
    "9.6.20260217-1",
    "10.2.20260405-0",
    "39.20231101.3.0",
];

/// The image of a version in a place: its name says what it is, so that a test can judge it.
fn ami(version: usize, arch: usize, region: usize) -> String {
    format!("ami-{version}{arch}{region}")
}

fn place_of(ami: &str) -> Option<(usize, usize, usize)> {
    let digits: Vec<usize> =
        ami.strip_prefix("ami-")?.chars().filter_map(|c| c.to_digit(10)).map(|d| d as usize).collect();
    Some((*digits.first()?, *digits.get(1)?, *digits.get(2)?))
}

/// A stream: for each place the version that it holds there, if any.
fn stream(places: &[Option<usize>]) -> Value {
    let mut value = json!({"architectures": {}});
    for (n, version) in places.iter().enumerate() {
        let (arch, region) = (n / REGIONS.len(), n % REGIONS.len());
        if let Some(version) = version {
            value["architectures"][ARCHITECTURES[arch]]["images"]["aws"]["regions"][REGIONS[region]] =
                json!({"release": VERSIONS[*version], "image": ami(*version, arch, region)});
        }
    }
    value
}

fn catalog(values: &[Value]) -> Catalog {
    let mut catalog = Catalog::new();
    for (n, value) in values.iter().enumerate() {
        let document = Document::parse(&format!("{n}.json"), value.to_string().as_bytes()).unwrap();
        catalog.add(&document, None);
    }
    catalog
}

#[derive(Debug, Clone)]
struct Set {
    image: String,
    region: usize,
    declared: Option<usize>,
    kind: u8,
}

fn manifest(sets: &[Set]) -> String {
    let mut text = String::new();
    for (n, set) in sets.iter().enumerate() {
        let declared =
            set.declared.map(|a| format!("kubernetes.io/arch={}", ["amd64", "arm64"][a])).unwrap_or_default();
        let value = format!(
            "{{kind: AWSMachineProviderConfig, ami: {{id: {}}}, placement: {{region: {}}}}}",
            set.image, REGIONS[set.region]
        );
        let annotations =
            format!("annotations: {{capacity.cluster-autoscaler.kubernetes.io/labels: '{declared}'}}");
        let owner = if set.kind == 3 { ", ownerReferences: [{kind: Boss, name: b}]" } else { "" };
        let object = match set.kind {
            1 => format!(
                "apiVersion: machine.openshift.io/v1\nkind: ControlPlaneMachineSet\nmetadata: {{name: s{n}, {annotations}}}\nspec: {{template: {{machines_v1beta1_machine_openshift_io: {{spec: {{providerSpec: {{value: {value}}}}}}}}}}}\n"
            ),
            2 => format!(
                "apiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata: {{name: s{n}, {annotations}}}\nspec: {{providerSpec: {{value: {value}}}}}\n"
            ),
            _ => format!(
                "apiVersion: machine.openshift.io/v1beta1\nkind: MachineSet\nmetadata: {{name: s{n}, {annotations}{owner}}}\nspec: {{template: {{spec: {{providerSpec: {{value: {value}}}}}}}}}\n"
            ),
        };
        text.push_str("---\n");
        text.push_str(&object);
    }
    text
}

fn any_set() -> impl Strategy<Value = Set> {
    let image = prop_oneof![
        6 => (0..VERSIONS.len(), 0..2usize, 0..3usize).prop_map(|(v, a, r)| ami(v, a, r)),
        1 => Just("ami-custom".to_owned()),
        1 => Just("managed".to_owned()),
    ];
    (image, 0..3usize, prop::option::of(0..2usize), 0u8..6).prop_map(|(image, region, declared, kind)| Set {
        image,
        region,
        declared,
        kind,
    })
}

/// A document is of one distribution: Fedora's is the last version.
fn any_places() -> impl Strategy<Value = Vec<Option<usize>>> {
    let fedora = VERSIONS.len() - 1;
    prop_oneof![
        5 => prop::collection::vec(prop::option::weighted(0.8, 0..fedora), 6),
        1 => prop::collection::vec(prop::option::weighted(0.8, Just(fedora)), 6),
    ]
}

fn any_policy() -> impl Strategy<Value = Value> {
    (any::<[bool; 3]>(), prop::option::weighted(0.2, 0..VERSIONS.len()), prop::option::weighted(0.2, 0..VERSIONS.len()), 0u8..8)
        .prop_map(|([down, replace, distribution], pin, deny, mode)| {
            let mut policy = json!({"mode": "Managed", "allowDowngrade": down, "allowReplaceMachines": replace, "allowDistributionChange": distribution});
            if mode == 0 {
                policy["mode"] = json!("Observe");
            }
            if let Some(pin) = pin {
                policy["pin"] = json!({"release": VERSIONS[pin]});
            }
            if let Some(deny) = deny {
                policy["deny"] = json!([VERSIONS[deny]]);
            }
            policy["skew"] = json!({"minimum": {"rhel": "9.2"}});
            policy
        })
}

struct World {
    release: Catalog,
    known: Catalog,
    policy: Policy,
    facts: Facts,
    slots: Vec<Slot>,
}

impl World {
    fn new(
        release: &[Option<usize>],
        known: &[Vec<Option<usize>>],
        policy: &Value,
        multi: bool,
        sets: &[Set],
    ) -> Self {
        let file: Arc<str> = "m.yaml".into();
        let mut inventory = Inventory::new();
        tree::documents(&manifest(sets), |d| inventory.add(&file, &d.unwrap()));
        let architecture =
            if multi { ClusterArchitecture::Multi } else { ClusterArchitecture::Single("x86_64".into()) };
        Self {
            release: catalog(&[stream(release)]),
            known: catalog(&known.iter().map(|p| stream(p)).collect::<Vec<_>>()),
            policy: Policy::read(policy).unwrap(),
            facts: Facts { architecture: Some(architecture), ..Facts::default() },
            slots: inventory.finish(),
        }
    }

    fn inputs(&self) -> Inputs<'_> {
        let now: Timestamp = "2026-12-01T00:00:00Z".parse().unwrap();
        Inputs { release: &self.release, known: &self.known, policy: &self.policy, facts: &self.facts, now }
    }

    fn plan(&self) -> Plan {
        Planner::new(self.inputs()).plan(&self.slots)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_plan_keeps_the_invariants(
        release in any_places(),
        known in prop::collection::vec(any_places(), 0..3),
        policy in any_policy(),
        multi in any::<bool>(),
        sets in prop::collection::vec(any_set(), 1..6),
    ) {
        let world = World::new(&release, &known, &policy, multi, &sets);
        let plan = world.plan();
        prop_assert_eq!(check(&plan, &world.slots, &world.inputs()), vec![]);
        prop_assert_eq!(&plan, &world.plan(), "the same input gives the same plan");
        for (decision, set) in plan.decisions.iter().zip(&sets) {
            if decision.action != Action::Update {
                prop_assert!(decision.changes.is_empty());
                continue;
            }
            // Judged by the names of the images alone, without the planner's words.
            let (from, to) = (place_of(&set.image), place_of(decision.to.reference.as_deref().unwrap()));
            let (from, to) = (from.unwrap(), to.unwrap());
            prop_assert_eq!(to.2, set.region, "an image of the set's own region");
            if let Some(declared) = set.declared {
                prop_assert_eq!(to.1, declared, "an image of the declared architecture");
            } else {
                prop_assert_eq!(to.1, from.1, "the proof is the current image");
            }
            prop_assert!(!matches!(set.kind, 2 | 3), "machines and owned sets are left");
            prop_assert!(set.kind != 1 || world.policy.allow_replace_machines);
            let version = |v: usize| VERSIONS[v].parse::<OsVersion>().unwrap();
            let order = version(from.0).compare(&version(to.0));
            let allowed = world.policy.allow_downgrade || world.policy.pin.is_some() || (from.0 == 6) != (to.0 == 6);
            prop_assert!(allowed || order != Some(std::cmp::Ordering::Greater), "no downgrade");
            prop_assert!(!world.policy.deny.contains(&VERSIONS[to.0].to_owned()));
        }
        let unknown = plan.decisions.iter().any(|d| d.skew.counts && d.reason == Reason::UnknownImage);
        prop_assert!(!unknown || plan.summary.skew.state >= SkewState::Unknown, "unknown is never fine");
    }

    #[test]
    fn a_plan_carried_out_is_current(
        release in any_places(),
        known in prop::collection::vec(any_places(), 0..3),
        sets in prop::collection::vec(any_set(), 1..6),
    ) {
        let world = World::new(&release, &known, &json!({"mode": "Managed"}), false, &sets);
        let mut after = sets.clone();
        let mut changed = Vec::new();
        for (n, decision) in world.plan().decisions.iter().enumerate() {
            if decision.action == Action::Update {
                after[n].image = decision.to.reference.clone().unwrap();
                changed.push(n);
            }
        }
        let again = World::new(&release, &known, &json!({"mode": "Managed"}), false, &after).plan();
        for n in changed {
            prop_assert_eq!(again.decisions[n].action, Action::Current, "{}", again.decisions[n].message);
        }
    }

    #[test]
    fn the_linter_sees_a_broken_plan(
        release in any_places(),
        known in prop::collection::vec(any_places(), 1..3),
        sets in prop::collection::vec(any_set(), 1..6),
        how in 0u8..7,
    ) {
        let world = World::new(&release, &known, &json!({"mode": "Managed"}), false, &sets);
        let mut plan = world.plan();
        let Some(n) = plan.decisions.iter().position(|d| d.action == Action::Update) else { return Ok(()) };
        let decision = &mut plan.decisions[n];
        match how {
            0 => decision.to.reference = Some(ami(4, 0, (sets[n].region + 1) % 3)),
            1 => decision.to.reference = Some("ami-custom".to_owned()),
            2 => { decision.patch.remove(0); }
            3 => decision.patch.clear(),
            4 => decision.reason = Reason::UpToDate,
            5 => { decision.action = Action::Leave; decision.reason = Reason::UnknownImage; }
            _ => { plan.decisions.pop(); }
        }
        prop_assert_ne!(check(&plan, &world.slots, &world.inputs()), vec![], "{}", how);
    }
}
