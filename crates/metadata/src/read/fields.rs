//! Tolerant access to fields of foreign JSON: what has the wrong type becomes a problem, never a failure.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::catalog::{Catalog, Problem};

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// Reads fields of one document and collects what is wrong with them.
pub(super) struct Fields<'a> {
    pub(super) name: &'a str,
    pub(super) problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Self { name, problems: Vec::new() }
    }

    /// Hands the problems over to the catalog.
    pub(super) fn finish(self, catalog: &mut Catalog) {
        catalog.problems.extend(self.problems);
    }

    pub(super) fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            source: self.name.to_owned(),
            path: path.to_owned(),
            message: message.into(),
        });
    }

    fn expected(&mut self, path: &str, key: &str, found: &Value, expected: &str) {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        self.problem(&path, format!("expected {expected}, found {}", kind(found)));
    }

    /// An object; absent and null read as empty.
    pub(super) fn object<'v>(&mut self, of: &'v Value, key: &str, path: &str) -> &'v Map<String, Value> {
        match of.get(key) {
            Some(Value::Object(map)) => map,
            None | Some(Value::Null) => &EMPTY,
            Some(other) => {
                self.expected(path, key, other, "an object");
                &EMPTY
            }
        }
    }

    /// A text; absent, null and empty read as none.
    pub(super) fn text<'v>(&mut self, of: &'v Value, key: &str, path: &str) -> Option<&'v str> {
        match of.get(key) {
            Some(Value::String(text)) => (!text.is_empty()).then_some(text.as_str()),
            None | Some(Value::Null) => None,
            Some(other) => {
                self.expected(path, key, other, "a string");
                None
            }
        }
    }

    /// A size in bytes; the files of 2019 write it as a string.
    pub(super) fn size(&mut self, of: &Value, key: &str, path: &str) -> Option<u64> {
        match of.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::Number(number)) if number.is_u64() => number.as_u64(),
            Some(Value::String(text)) if text.parse::<u64>().is_ok() => text.parse().ok(),
            Some(other) => {
                self.expected(path, key, other, "a size in bytes");
                None
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
