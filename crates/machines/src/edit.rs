//! Surgical edits: exactly the bytes of a reference change.

use std::ops::Range;

use crate::tree::{Content, Node, Style};

/// Where a field's new value is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Site {
    /// In the place of a scalar.
    Replace {
        /// The bytes of the scalar, quotes included.
        range: Range<usize>,
        /// How it is written now; kept, unless the new value cannot be written so.
        style: SiteStyle,
        /// How many places of the document read these bytes through an anchor; 1 without one. A container's anchor
        /// counts as every number, for its uses cannot be told apart.
        uses: usize,
    },
    /// As a new entry of a mapping.
    Insert {
        /// Where it goes.
        at: usize,
        /// What stands in front of the value: the key.
        before: String,
        /// What follows the value, up to the entry that stood there.
        after: String,
        /// Whether the mapping is written in braces.
        flow: bool,
    },
}

/// The styles that an edit can keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteStyle {
    /// Without quotes, in a block.
    Plain,
    /// Without quotes, in braces or brackets.
    PlainInFlow,
    /// Single quotes.
    Single,
    /// Double quotes.
    Double,
    /// Nothing yet: `key:`.
    Empty,
}

/// One replacement of bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes that go.
    pub range: Range<usize>,
    /// What comes.
    pub text: String,
}

/// Why edits were not made; the text is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// A range lies outside the text or inside a character.
    #[error("bytes {}..{} are not in the text: it changed since it was read", range.start, range.end)]
    OutOfRange {
        /// The range.
        range: Range<usize>,
    },
    /// Two edits want the same bytes to become different texts.
    #[error("two changes want bytes {}..{}: one `{one}`, the other `{other}`", range.start, range.end)]
    Conflict {
        /// The range.
        range: Range<usize>,
        /// One text.
        one: String,
        /// The other.
        other: String,
    },
}

/// Applies edits to a text. Equal edits count once; the order does not matter.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by(|a, b| (a.range.start, a.range.end, &a.text).cmp(&(b.range.start, b.range.end, &b.text)));
    edits.dedup();
    let mut out = String::with_capacity(text.len() + edits.len() * 16);
    let mut done = 0;
    let mut last: Option<&Edit> = None;
    for edit in edits {
        let overlaps = last.filter(|l| edit.range.start < l.range.end || edit.range == l.range);
        if let Some(other) = overlaps {
            let (one, other) = (other.text.clone(), edit.text.clone());
            return Err(EditError::Conflict { range: edit.range.clone(), one, other });
        }
        let error = || EditError::OutOfRange { range: edit.range.clone() };
        text.get(edit.range.clone()).ok_or_else(error)?;
        out.push_str(text.get(done..edit.range.start).ok_or_else(error)?);
        out.push_str(&edit.text);
        done = edit.range.end;
        last = Some(edit);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Ok(out)
}

impl Site {
    /// The edit that writes a value here.
    pub fn write(&self, value: &str) -> Edit {
        match self {
            Self::Replace { range, style, .. } => Edit { range: range.clone(), text: written(*style, value) },
            Self::Insert { at, before, after, flow } => {
                let style = if *flow { SiteStyle::Double } else { SiteStyle::Plain };
                Edit { range: *at..*at, text: format!("{before}{}{after}", written(style, value)) }
            }
        }
    }

    /// The site of a scalar node; `None` for a live object, a collection, and a block scalar.
    pub(crate) fn of(node: &Node, parent: &Node, shared: &[crate::tree::Shared]) -> Option<Self> {
        let Content::Scalar { style, .. } = &node.content else { return None };
        let range = node.place.as_ref()?.range.clone();
        let flow = matches!(parent.content, Content::Mapping { flow: true, .. });
        let style = match style {
            Style::Plain if flow => SiteStyle::PlainInFlow,
            Style::Plain => SiteStyle::Plain,
            Style::Single => SiteStyle::Single,
            Style::Double => SiteStyle::Double,
            Style::Empty if flow => return None,
            Style::Empty => SiteStyle::Empty,
            Style::Block => return None,
        };
        let covering = shared.iter().filter(|s| s.range.start <= range.start && range.end <= s.range.end);
        let uses = covering.map(|s| if s.scalar { s.uses } else { usize::MAX }).max().unwrap_or(1);
        Some(Self::Replace { range, style, uses })
    }

    /// The site of an entry that the mapping lacks: in front of the first entry that follows it in the alphabet, else
    /// of the last.
    pub(crate) fn insert(mapping: &Node, key: &str, shared: &[crate::tree::Shared]) -> Option<Self> {
        let Content::Mapping { entries, flow } = &mapping.content else { return None };
        let neighbour = entries.iter().find(|e| e.key.as_str() > key).or(entries.last())?;
        let place = neighbour.key_place.as_ref()?;
        let whole = &mapping.place.as_ref()?.range;
        if shared.iter().any(|s| s.range.start <= whole.start && whole.end <= s.range.end) {
            return None;
        }
        let at = place.range.start;
        if *flow {
            return Some(Self::Insert {
                at,
                before: format!("\"{key}\": "),
                after: ", ".to_owned(),
                flow: true,
            });
        }
        let indent = " ".repeat(place.column.saturating_sub(1));
        Some(Self::Insert { at, before: format!("{key}: "), after: format!("\n{indent}"), flow: false })
    }
}

/// A value in a style; double quotes where the style cannot hold it.
fn written(style: SiteStyle, value: &str) -> String {
    match style {
        SiteStyle::Plain if is_safe_plain(value, false) => value.to_owned(),
        SiteStyle::PlainInFlow if is_safe_plain(value, true) => value.to_owned(),
        SiteStyle::Single if !value.contains(char::is_control) => format!("'{}'", value.replace('\'', "''")),
        SiteStyle::Empty if is_safe_plain(value, false) => format!(" {value}"),
        SiteStyle::Empty => format!(" {}", quoted(value)),
        _ => quoted(value),
    }
}

/// JSON's quoting, which is also YAML's double quoting.
fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

/// Whether a value reads back as this very string without quotes, for YAML 1.1 readers too.
fn is_safe_plain(value: &str, flow: bool) -> bool {
    let allowed = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | '=' | '%')
    };
    let starts_well = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_');
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"];
    let colon_is_unsafe = value.ends_with(':') || (flow && value.contains(':'));
    starts_well
        && !colon_is_unsafe
        && value.chars().all(allowed)
        && !words.contains(&value.to_ascii_lowercase().as_str())
        && !looks_like_a_number(value)
}

/// Numbers of YAML 1.1 and 1.2, also sexagesimal ones and dates.
fn looks_like_a_number(value: &str) -> bool {
    value.starts_with(|c: char| c.is_ascii_digit())
        && (value.chars().all(|c| c.is_ascii_digit() || matches!(c, '_' | ':' | '-' | '+' | 'e' | 'E'))
            || value.replace('_', "").parse::<f64>().is_ok()
            || value.starts_with("0x")
            || value.starts_with("0o")
            || value.starts_with("0b"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_is_kept_where_it_can_hold_the_value() {
        let cases = [
            (SiteStyle::Plain, "ami-0c8d2d0c18312402b", "ami-0c8d2d0c18312402b"),
            (SiteStyle::Plain, "9.6.20251015", "9.6.20251015"),
            (SiteStyle::Plain, "4.20", "\"4.20\""),
            (SiteStyle::Plain, "20260217", "\"20260217\""),
            (SiteStyle::Plain, "", "\"\""),
            (SiteStyle::Plain, "a: b", "\"a: b\""),
            (SiteStyle::PlainInFlow, "https://x/y", "\"https://x/y\""),
            (SiteStyle::Single, "it's", "'it''s'"),
            (SiteStyle::Double, "a\"b", "\"a\\\"b\""),
            (SiteStyle::Empty, "x", " x"),
        ];
        for (style, value, expected) in cases {
            assert_eq!(written(style, value), expected, "{value}");
        }
    }

    #[test]
    fn conflicting_edits_are_refused() {
        let edit = |range, text: &str| Edit { range, text: text.to_owned() };
        assert_eq!(apply("abc", &[edit(1..2, "X"), edit(1..2, "X")]).unwrap(), "aXc");
        assert!(matches!(apply("abc", &[edit(1..2, "X"), edit(1..2, "Y")]), Err(EditError::Conflict { .. })));
        assert!(matches!(apply("abc", &[edit(0..2, "X"), edit(1..3, "Y")]), Err(EditError::Conflict { .. })));
        assert!(matches!(apply("ü", &[edit(1..2, "X")]), Err(EditError::OutOfRange { .. })));
        assert!(matches!(apply("a", &[edit(5..6, "X")]), Err(EditError::OutOfRange { .. })));
    }
}
