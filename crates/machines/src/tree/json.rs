//! A node as JSON, as a Kubernetes client reads YAML: by YAML 1.1 (sigs.k8s.io/yaml over go-yaml 2).

use serde_json::{Map, Value};

use super::{Content, Node, Style};

/// Nodes that are made at most: aliases of aliases can name more nodes than memory holds.
const MAX_NODES: usize = 200_000;

impl Node {
    /// The value as JSON; `None` where aliases make it larger than any manifest.
    pub fn to_json(&self) -> Option<Value> {
        self.json(&mut MAX_NODES.clone())
    }

    fn json(&self, budget: &mut usize) -> Option<Value> {
        *budget = budget.checked_sub(1)?;
        Some(match &self.content {
            Content::Sequence(items) => {
                Value::Array(items.iter().map(|item| item.json(budget)).collect::<Option<_>>()?)
            }
            Content::Mapping { entries, .. } => {
                let mut map = Map::new();
                let mut merged = Vec::new();
                for entry in entries {
                    match (entry.key.as_str(), entry.value.json(budget)?) {
                        ("<<", Value::Object(source)) => merged.push(source),
                        ("<<", Value::Array(sources)) => {
                            merged.extend(sources.into_iter().filter_map(|s| match s {
                                Value::Object(source) => Some(source),
                                _ => None,
                            }));
                        }
                        (key, value) => {
                            map.insert(key.to_owned(), value);
                        }
                    }
                }
                for (key, value) in merged.into_iter().flatten() {
                    map.entry(key).or_insert(value);
                }
                Value::Object(map)
            }
            Content::Scalar { text, style: Style::Plain } => plain(text),
            Content::Scalar { style: Style::Empty, .. } => Value::Null,
            Content::Scalar { text, .. } => Value::String(text.clone()),
        })
    }
}

/// An unquoted scalar.
fn plain(text: &str) -> Value {
    match text {
        "null" | "~" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "y" | "Y" => {
            return Value::Bool(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "n" | "N" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
        return Value::String(text.to_owned());
    }
    let bare = text.replace('_', "");
    if let Some(integer) = integer(&bare) {
        return integer;
    }
    let float = bare.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    let float = float.then(|| bare.parse::<f64>().ok()).flatten().and_then(serde_json::Number::from_f64);
    float.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)];
    let prefixed = prefixed.into_iter().find_map(|(prefix, radix)| {
        digits.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok())
    });
    let magnitude = prefixed.or_else(|| {
        let octal = digits.len() > 1 && digits.starts_with('0');
        let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        all_digits.then(|| u64::from_str_radix(digits, if octal { 8 } else { 10 }).ok()).flatten()
    })?;
    if negative {
        return i64::try_from(magnitude).ok().map(|n| Value::from(-n));
    }
    Some(Value::from(magnitude))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unquoted_words_read_as_a_kubernetes_client_reads_them() {
        let cases = [
            ("yes", json!(true)),
            ("off", json!(false)),
            ("0644", json!(420)),
            ("0x1F", json!(31)),
            ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
            ("-7", json!(-7)),
            ("1.5", json!(1.5)),
            ("1_000", json!(1000)),
            ("9.6.20251015", json!("9.6.20251015")),
            ("2026-12-01", json!("2026-12-01")),
            ("ami-1", json!("ami-1")),
            ("-", json!("-")),
        ];
        for (text, value) in cases {
            assert_eq!(plain(text), value, "{text}");
        }
    }
}
