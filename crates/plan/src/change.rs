//! The change of one slot: a guarded JSON Patch, and the same in the bytes of files.

use std::ops::Range;
use std::sync::Arc;

use machines::edit::{Edit, Site};
use machines::{Field, Role, Slot, Template};
use serde_json::{Value, json};

use crate::output::PatchOp;

/// A change in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileChange {
    /// Bytes are replaced.
    Edit {
        /// The file.
        file: Arc<str>,
        /// What.
        edit: Edit,
        /// How many places read these bytes (1 without an anchor).
        uses: usize,
    },
    /// A copy of a document is put at the end of the file, with edits in it.
    Append {
        /// The file.
        file: Arc<str>,
        /// The document's bytes.
        document: Range<usize>,
        /// Edits, in the bytes of the file.
        edits: Vec<Edit>,
    },
}

impl FileChange {
    /// The file that it is about.
    pub fn file(&self) -> &Arc<str> {
        match self {
            Self::Edit { file, .. } | Self::Append { file, .. } => file,
        }
    }
}

/// All that carries one decision out.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) patch: Vec<PatchOp>,
    pub(crate) creates: Vec<Value>,
    pub(crate) files: Vec<FileChange>,
}

/// Why a reference cannot be changed alone, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotEditable(pub(crate) String, pub(crate) &'static str);

/// Builds the change that gives a slot's fields new values. Fields that hold theirs already are not touched; a field
/// for which there is no value would no longer belong to the others.
pub(crate) fn build(slot: &Slot, values: &[(Role, String)]) -> Result<Change, NotEditable> {
    let mut wanted: Vec<(&Field, &str)> = Vec::new();
    for field in &slot.fields {
        let Some((_, value)) = values.iter().find(|(role, _)| *role == field.role) else {
            let message =
                format!("{} would have to change with it, and nothing tells to what", field.pointer);
            return Err(NotEditable(message, "change the fields together by hand"));
        };
        if field.value.as_deref().unwrap_or_default() != value {
            wanted.push((field, value));
        }
    }
    if slot.fields.is_empty() {
        let place = slot.template.as_ref().map_or(&slot.pointer, |t| &t.pointer);
        let message = format!("{place} holds an id, which no metadata gives");
        return Err(NotEditable(message, "name the image by its name, or change the id by hand"));
    }
    match &slot.template {
        _ if wanted.is_empty() => Ok(Change::default()),
        None => in_place(slot, &wanted),
        Some(template) => replaced(slot, template, &wanted),
    }
}

fn in_place(slot: &Slot, wanted: &[(&Field, &str)]) -> Result<Change, NotEditable> {
    let mut change = Change::default();
    // A reference of several fields is guarded as a whole.
    let guarded =
        |field: &&Field| field.exists && (slot.fields.len() > 1 || wanted.iter().any(|(f, _)| f == field));
    change.patch.extend(slot.fields.iter().filter(guarded).map(test));
    for (field, value) in wanted {
        let op = if field.exists { "replace" } else { "add" };
        change.patch.push(PatchOp { op, path: field.pointer.clone(), value: json!(value) });
        if let Some(file) = &slot.object.file {
            change.files.push(edit(file, field, value)?);
        }
    }
    Ok(change)
}

/// An immutable template is left as it is: a new one is created, and the machine set is pointed at it.
fn replaced(slot: &Slot, template: &Template, wanted: &[(&Field, &str)]) -> Result<Change, NotEditable> {
    let Some(repoint) = &template.repoint else { return Ok(Change::default()) };
    let mut object = template.object.clone();
    let server_fields = strip_server_fields(&mut object);
    let set = |object: &mut Value, pointer: &str, value: &str| {
        let (parent, key) = pointer.rsplit_once('/')?;
        object
            .pointer_mut(parent)?
            .as_object_mut()?
            .insert(key.replace("~1", "/").replace("~0", "~"), json!(value))
    };
    for (field, value) in wanted {
        set(&mut object, &field.pointer, value);
    }
    let old = &template.id.name;
    if old.contains(['"', '\'']) {
        let message = format!("the name {old} has a default in quotes");
        return Err(NotEditable(message, "write the default without quotes"));
    }
    let name = new_name(old, &object);
    set(&mut object, "/metadata/name", &name);
    let replace = PatchOp { op: "replace", path: repoint.pointer.clone(), value: json!(name) };
    let mut change = Change { patch: vec![test(repoint), replace], creates: vec![object], files: Vec::new() };
    if let Some(file) = &template.id.file {
        let which = format!("{} {old}", template.id.kind);
        let document = template.document.clone();
        let document = document.ok_or_else(|| {
            NotEditable(
                format!("{which} is no block document of its own"),
                "put it into a YAML document of its own",
            )
        })?;
        if server_fields {
            let message = format!("{which} carries fields of the server, which a new object must not have");
            let next = "remove status, uid, resourceVersion, generation, managedFields, creationTimestamp and last-applied";
            return Err(NotEditable(message, next));
        }
        let mut edits = Vec::new();
        for (field, value) in [(&template.name, name.as_str())].into_iter().chain(wanted.iter().copied()) {
            let site = site(field)?;
            if uses(site) > 1 {
                let message = format!("{which} shares {} by a YAML anchor", field.pointer);
                return Err(NotEditable(message, "write it out in the place of the alias"));
            }
            edits.push(site.write(value));
        }
        change.files.push(FileChange::Append { file: Arc::clone(file), document, edits });
    }
    if let Some(file) = &slot.object.file {
        change.files.push(edit(file, repoint, &name)?);
    }
    Ok(change)
}

/// The guard: the field holds what it held when the plan was made.
fn test(field: &Field) -> PatchOp {
    let value = field.value.as_ref().map_or(Value::Null, |old| json!(old));
    PatchOp { op: "test", path: field.pointer.clone(), value }
}

fn uses(site: &Site) -> usize {
    match site {
        Site::Replace { uses, .. } => *uses,
        Site::Insert { .. } => 1,
    }
}

fn site(field: &Field) -> Result<&Site, NotEditable> {
    field.site.as_ref().ok_or_else(|| {
        let message =
            format!("{} is a block, has a tag, or stands where only JSON can be read", field.pointer);
        NotEditable(message, "write it as a plain or quoted value of its own")
    })
}

fn edit(file: &Arc<str>, field: &Field, value: &str) -> Result<FileChange, NotEditable> {
    let site = site(field)?;
    Ok(FileChange::Edit { file: Arc::clone(file), edit: site.write(value), uses: uses(site) })
}

/// The old name with a hash of the new specification behind it, in the place of an earlier hash: the same change gives
/// the same name, and two templates that differ never share one.
fn new_name(old: &str, object: &Value) -> String {
    let hash = |text: &str| {
        // FNV-1a (Fowler, Noll, Vo): short, and the same everywhere.
        text.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    };
    let base = match old.rsplit_once('-') {
        Some((base, end))
            if end.len() == 8 && end.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) =>
        {
            base
        }
        _ => old,
    };
    let base: String = base.chars().take(240).collect();
    // Everything but the name: labels and annotations tell templates apart too.
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("name");
    }
    format!("{base}-{:08x}", hash(&object.to_string()))
}

/// What the API server writes into an object is not taken into a new one. Tells whether there was any.
fn strip_server_fields(object: &mut Value) -> bool {
    let mut found = object.as_object_mut().is_some_and(|map| map.remove("status").is_some());
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["uid", "resourceVersion", "generation", "managedFields", "selfLink"] {
            found |= metadata.remove(key).is_some();
        }
        // Manifests of old generators say `creationTimestamp: null`, which is none.
        found |= metadata.remove("creationTimestamp").is_some_and(|time| !time.is_null());
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            found |= annotations.remove("kubectl.kubernetes.io/last-applied-configuration").is_some();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_new_templates_do_not_grow_and_do_not_collide() {
        let object = |image: &str, size: &str| json!({"spec": {"ami": image, "instanceType": size}});
        let first = new_name("workers", &object("ami-1", "m5.large"));
        let second = new_name(&first, &object("ami-2", "m5.large"));
        assert!(first.starts_with("workers-") && second.starts_with("workers-"));
        assert_eq!(first.len(), second.len());
        assert_ne!(first, second);
        assert_eq!(second, new_name("workers", &object("ami-2", "m5.large")));
        let (small, large) = (object("ami-2", "m5.large"), object("ami-2", "m5.4xlarge"));
        assert_ne!(new_name("pool-20240101", &small), new_name("pool-20240201", &large));
    }
}
