//! Surgical edits: exactly the bytes of a reference change.

use std::ops::Range;

use crate::tree::{Content, Node, Style, Writing};

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
        /// What stands in front of the value: a line's beginning, and the key.
        before: String,
        /// What follows the value.
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

/// Applies edits to a text. Equal edits count once; the order does not matter. Insertions at one place follow each other
/// in the order of the alphabet.
pub fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by(|a, b| (a.range.start, a.range.end, &a.text).cmp(&(b.range.start, b.range.end, &b.text)));
    edits.dedup();
    let mut out = String::with_capacity(text.len() + edits.len() * 16);
    let mut done = 0;
    let mut last: Option<&Edit> = None;
    for edit in edits {
        let insertions = |other: &Edit| edit.range.is_empty() && other.range.is_empty();
        let overlaps =
            last.filter(|l| edit.range.start < l.range.end || (edit.range == l.range && !insertions(l)));
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

    /// The site of a scalar node; `None` for a live object, a collection, and a scalar that is a block or has a tag.
    pub(crate) fn of(node: &Node, parent: &Node, writing: &Writing) -> Option<Self> {
        let Content::Scalar { text, style } = &node.content else { return None };
        let range = node.place.as_ref()?.range.clone();
        let flow = matches!(parent.content, Content::Mapping { flow: true, .. });
        let style = match style {
            // In JSON only words and numbers stand without quotes; a text in their place needs them.
            Style::Plain if flow && reads_as_text(text) => SiteStyle::PlainInFlow,
            Style::Plain if flow => SiteStyle::Double,
            Style::Plain => SiteStyle::Plain,
            Style::Single => SiteStyle::Single,
            Style::Double => SiteStyle::Double,
            Style::Empty if !flow => SiteStyle::Empty,
            Style::Empty | Style::Block | Style::Tagged => return None,
        };
        Some(Self::Replace { uses: writing.uses(&range), range, style })
    }

    /// The site of an entry that the mapping lacks: behind the entry that goes before it in the alphabet, on a line of
    /// its own; in braces, in front of the entry that follows it.
    pub(crate) fn insert(mapping: &Node, key: &str, writing: &Writing) -> Option<Self> {
        let Content::Mapping { entries, flow } = &mapping.content else { return None };
        if writing.uses(&mapping.place.as_ref()?.range) > 1 {
            return None;
        }
        if *flow {
            let neighbour = entries.iter().find(|e| e.key.as_str() > key).or(entries.last())?;
            let at = neighbour.key_place.as_ref()?.range.start;
            return Some(Self::Insert {
                at,
                before: format!("\"{key}\": "),
                after: ", ".to_owned(),
                flow: true,
            });
        }
        let with_line = || entries.iter().filter_map(|e| e.behind.as_ref().map(|behind| (e, behind)));
        let (_, behind) =
            with_line().rfind(|(e, _)| e.key.as_str() < key).or_else(|| with_line().next_back())?;
        let newline = if writing.crlf { "\r\n" } else { "\n" };
        let before = format!("{newline}{}{key}: ", " ".repeat(behind.indent));
        Some(Self::Insert { at: behind.at, before, after: String::new(), flow: false })
    }
}

impl Writing {
    /// How many places of the document read these bytes through an anchor; every number for a container's, whose uses
    /// cannot be told apart.
    fn uses(&self, range: &Range<usize>) -> usize {
        let covering =
            self.shared.iter().filter(|s| s.range.start <= range.start && range.end <= s.range.end);
        covering.map(|s| if s.scalar { s.uses } else { usize::MAX }).max().unwrap_or(1)
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

/// Whether an unquoted scalar is a text: neither a word with a meaning of its own nor a number.
fn reads_as_text(text: &str) -> bool {
    !is_word(text) && !looks_like_a_number(text)
}

fn is_word(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"];
    words.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether a value reads back as this very string without quotes, for YAML 1.1 readers too.
fn is_safe_plain(value: &str, flow: bool) -> bool {
    // In a block, braces inside a word have no meaning: placeholders of clusterctl stay unquoted.
    let allowed = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | '=' | '%')
            || (!flow && matches!(c, '$' | '{' | '}'))
    };
    let starts_well = value.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '$'));
    let colon_is_unsafe = value.ends_with(':') || (flow && value.contains(':'));
    starts_well
        && !colon_is_unsafe
        && value.chars().all(allowed)
        && !is_word(value)
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
