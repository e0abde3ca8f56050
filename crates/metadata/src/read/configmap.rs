//! The ConfigMap `coreos-bootimages` (openshift/installer, applied by the cluster-version operator).
//!
//! `data.stream` is one stream, kept for readers that know no more; since 5.0 `data.streams` holds all of them by name.
//! `data.releaseVersion` is the release. The Machine Config Operator stamps `MCOVersionHash` and `MCOReleaseImageVersion`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::fields::Fields;
use super::{source, stream};
use crate::catalog::Catalog;
use crate::document::Format;

/// What a build of the installer writes before a release is made of it.
const PLACEHOLDER_RELEASE: &str = "0.0.1-snapshot";

pub(super) fn add(catalog: &mut Catalog, name: &Arc<str>, value: &Value) {
    let mut fields = Fields::new(name);
    let none = Value::Null;
    let data = value.get("data").unwrap_or(&none);
    let release =
        fields.text(data, "releaseVersion", "data").filter(|v| *v != PLACEHOLDER_RELEASE).map(str::to_owned);
    let stamped = fields.text(data, "MCOReleaseImageVersion", "data").map(str::to_owned);
    let default = inner(&mut fields, data, "stream");
    let named: Map<String, Value> = match inner(&mut fields, data, "streams") {
        Some(Value::Object(map)) => map,
        Some(_) => {
            fields.problem("data.streams", "expected an object of streams by name");
            Map::new()
        }
        None => Map::new(),
    };
    fields.finish(catalog);

    let base = |key: &str| {
        let mut source = source(&format!("{name}#{key}").into(), Format::ConfigMap);
        source.release_version.clone_from(&release);
        source.stamped_release.clone_from(&stamped);
        source
    };
    // The default among the named streams is the one that says what `data.stream` says. Names inside the streams prove
    // nothing: they are left at old minors.
    let is_default = |candidate: &Value| default.as_ref() == Some(candidate);
    let default_is_named = named.values().any(is_default);
    if let Some(value) = default.as_ref().filter(|_| !default_is_named) {
        stream::add_as(catalog, base("stream"), value);
    }
    for (key, value) in &named {
        let mut source = base(&format!("streams.{key}"));
        source.os_stream = (!key.is_empty()).then(|| key.clone());
        source.default = if default.is_some() { is_default(value) } else { named.len() == 1 };
        stream::add_as(catalog, source, value);
    }
}

/// JSON in a string.
fn inner(fields: &mut Fields<'_>, data: &Value, key: &str) -> Option<Value> {
    let text = fields.text(data, key, "data")?;
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(error) => {
            fields.problem(&format!("data.{key}"), format!("expected JSON in the string: {error}"));
            None
        }
    }
}
