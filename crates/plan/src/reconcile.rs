//! What single decisions cannot see: two of them may want one place.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use machines::Slot;
use serde_json::Value;

use crate::change::FileChange;
use crate::output::{Action, Decision};
use crate::reason::Reason;

/// By file and bytes: which decisions write there, and what.
type Writers = HashMap<(Arc<str>, Range<usize>), Vec<(usize, String)>>;

/// Bytes under an anchor may change only where all places that read them change alike.
pub(crate) fn shared_anchors(decisions: &mut [Decision]) {
    let mut writers = Writers::new();
    let mut uses_of: HashMap<(Arc<str>, Range<usize>), usize> = HashMap::new();
    for (n, decision) in decisions.iter().enumerate() {
        for change in &decision.changes {
            if let FileChange::Edit { file, edit, uses } = change
                && *uses > 1
            {
                let key = (Arc::clone(file), edit.range.clone());
                uses_of.insert(key.clone(), *uses);
                writers.entry(key).or_default().push((n, edit.text.clone()));
            }
        }
    }
    for (key, who) in writers {
        let alike = who.iter().all(|(_, text)| who.first().is_some_and(|(_, first)| first == text));
        if alike && uses_of.get(&key) == Some(&who.len()) {
            continue;
        }
        for (n, _) in &who {
            if let Some(decision) = decisions.get_mut(*n) {
                refuse(
                    decision,
                    Reason::SharedByAnchor,
                    "a YAML anchor shares the reference with places that must stay as they are",
                    "write the reference out in the place of the alias",
                );
            }
        }
    }
}

/// A new template is created once, however many sets use it and wherever they stand; one that is there already is used
/// as it is, if it is the same, and is never written over.
pub(crate) fn new_templates(decisions: &mut [Decision], slots: &[Slot]) {
    let mut made: Vec<(Value, Arc<str>)> = Vec::new();
    for n in 0..decisions.len() {
        let Some(decision) = decisions.get_mut(n).filter(|d| d.action == Action::Update) else { continue };
        let Some(created) = decision.creates.first().cloned() else { continue };
        let text = |pointer: &str| created.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        let appended_to = decision.changes.iter().find_map(|change| match change {
            FileChange::Append { file, .. } => Some(Arc::clone(file)),
            FileChange::Edit { .. } => None,
        });
        // Two clusters of one tree may have templates of one name; one folder has not.
        let folder = |file: &Arc<str>| Path::new(&**file).parent().map(Path::to_path_buf);
        let near = |file: Option<&Arc<str>>| match (file, &appended_to) {
            (Some(a), Some(b)) => folder(a) == folder(b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let there = slots.iter().filter_map(|s| s.template.as_deref()).find(|t| {
            t.id.kind == kind && t.id.namespace == namespace && t.id.name == name && near(t.id.file.as_ref())
        });
        let same = |object: &Value| object.get("spec") == created.get("spec");
        let again = made.iter().any(|(object, file)| *object == created && near(Some(file)));
        match there {
            Some(there) if !same(&there.object) => refuse(
                decision,
                Reason::NotEditable,
                "another template has the name that the new one would get",
                "rename that template, or remove it where no set uses it",
            ),
            None if !again => made.extend(appended_to.map(|file| (created, file))),
            _ => {
                if there.is_some() {
                    decision.creates.clear();
                }
                decision.changes.retain(|change| matches!(change, FileChange::Edit { .. }));
            }
        }
    }
}

fn refuse(decision: &mut Decision, reason: Reason, message: &str, next: &str) {
    decision.action = Action::Refuse;
    decision.reason = reason;
    message.clone_into(&mut decision.message);
    decision.next = Some(next.to_owned());
    decision.skew.after = decision.skew.state;
    decision.patch.clear();
    decision.creates.clear();
    decision.changes.clear();
}
