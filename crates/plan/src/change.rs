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

/// Why a reference cannot be changed alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotEditable(pub(crate) String);

/// Builds the change that gives a slot's fields new values. Fields that hold theirs already are not touched.
pub(crate) fn build(slot: &Slot, values: &[(Role, String)]) -> Result<Change, NotEditable> {
    let wanted: Vec<(&Field, &str)> = slot
        .fields
        .iter()
        .filter_map(|field| {
            let (_, value) = values.iter().find(|(role, _)| *role == field.role)?;
            let same = field.value.as_deref().unwrap_or_default() == value;
            (!same).then_some((field, value.as_str()))
        })
        .collect();
    match &slot.template {
        None => in_place(slot.object.file.as_ref(), &wanted),
        Some(template) => replaced(slot, template, &wanted, values),
    }
}

fn in_place(file: Option<&Arc<str>>, wanted: &[(&Field, &str)]) -> Result<Change, NotEditable> {
    let mut change = Change::default();
    for (field, value) in wanted {
        change.patch.extend(operations(field, value));
        if let Some(file) = file {
            change.files.push(edit(file, field, value)?);
        }
    }
    Ok(change)
}

/// An immutable template is left as it is: a new one is created, and the machine set is pointed at it.
fn replaced(
    slot: &Slot,
    template: &Template,
    wanted: &[(&Field, &str)],
    values: &[(Role, String)],
) -> Result<Change, NotEditable> {
    let Some(repoint) = &template.repoint else { return Ok(Change::default()) };
    let name = new_name(&template.id.name, values);
    let mut object = template.object.clone();
    strip_server_fields(&mut object);
    let set = |object: &mut Value, pointer: &str, value: &str| {
        let (parent, key) = pointer.rsplit_once('/')?;
        object
            .pointer_mut(parent)?
            .as_object_mut()?
            .insert(key.replace("~1", "/").replace("~0", "~"), json!(value))
    };
    set(&mut object, "/metadata/name", &name);
    for (field, value) in wanted {
        set(&mut object, &field.pointer, value);
    }
    let mut change = Change { patch: operations(repoint, &name), creates: vec![object], files: Vec::new() };
    if let Some(file) = &template.id.file {
        let document = template.document.clone().ok_or_else(|| {
            NotEditable(format!("{} {} is no block document of its own", template.id.kind, template.id.name))
        })?;
        let mut edits = vec![site(&template.name)?.write(&name)];
        for (field, value) in wanted {
            edits.push(site(field)?.write(value));
        }
        change.files.push(FileChange::Append { file: Arc::clone(file), document, edits });
    }
    if let Some(file) = &slot.object.file {
        change.files.push(edit(file, repoint, &name)?);
    }
    Ok(change)
}

fn operations(field: &Field, value: &str) -> Vec<PatchOp> {
    let op = |op, value: Value| PatchOp { op, path: field.pointer.clone(), value };
    if field.exists {
        vec![
            op("test", field.value.as_ref().map_or(Value::Null, |old| json!(old))),
            op("replace", json!(value)),
        ]
    } else {
        vec![op("add", json!(value))]
    }
}

fn site(field: &Field) -> Result<&Site, NotEditable> {
    field
        .site
        .as_ref()
        .ok_or_else(|| NotEditable(format!("{} is written as a block or stands in braces", field.pointer)))
}

fn edit(file: &Arc<str>, field: &Field, value: &str) -> Result<FileChange, NotEditable> {
    let site = site(field)?;
    let uses = match site {
        Site::Replace { uses, .. } => *uses,
        Site::Insert { .. } => 1,
    };
    Ok(FileChange::Edit { file: Arc::clone(file), edit: site.write(value), uses })
}

/// The old name with a hash of the image behind it: the same change gives the same name.
fn new_name(old: &str, values: &[(Role, String)]) -> String {
    let base = match old.rsplit_once('-') {
        Some((base, hash))
            if hash.len() == 8 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) =>
        {
            base
        }
        _ => old,
    };
    // FNV-1a (Fowler, Noll, Vo): short, and the same everywhere.
    let mut hash: u32 = 0x811c_9dc5;
    for byte in values.iter().flat_map(|(_, value)| value.bytes().chain([0])) {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let room: String = base.chars().take(240).collect();
    format!("{room}-{hash:08x}")
}

/// What the API server writes into an object is not taken into a new one.
fn strip_server_fields(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"]
        {
            metadata.remove(key);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_new_templates_do_not_grow() {
        let values = |v: &str| vec![(Role::Image, v.to_owned())];
        let first = new_name("workers", &values("ami-1"));
        let second = new_name(&first, &values("ami-2"));
        assert!(first.starts_with("workers-") && second.starts_with("workers-"));
        assert_eq!(first.len(), second.len());
        assert_ne!(first, second);
        assert_eq!(second, new_name("workers", &values("ami-2")));
    }
}
