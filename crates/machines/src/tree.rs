//! One node tree for YAML (with byte offsets) and for live JSON (without).

mod build;
mod json;

pub use build::{ParseError, documents};

use std::ops::Range;
use std::rc::Rc;

use serde_json::Value;

/// Deeper nesting is no manifest, and would cost stack where trees are walked.
const MAX_DEPTH: usize = 128;
/// Merged mappings that one look-up visits at most: merges of merges can name more than time allows.
const MAX_MERGES: usize = 1_000;

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What stands there.
    pub content: Content,
    /// Where it stands in the text; `None` in a live object.
    pub place: Option<Place>,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A scalar: its text, and whether it was quoted (then it is a string whatever it looks like).
    Scalar {
        /// The text, unescaped.
        text: String,
        /// How it is written.
        style: Style,
    },
    /// A sequence.
    Sequence(Vec<Rc<Node>>),
    /// A mapping, in the order of the text.
    Mapping {
        /// The entries.
        entries: Vec<Entry>,
        /// Whether it is written in braces.
        flow: bool,
    },
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key; the text of a scalar, empty for a key that is none.
    pub key: String,
    /// Where the key stands.
    pub key_place: Option<Place>,
    /// The value.
    pub value: Rc<Node>,
    /// Where a new entry can be put behind this one; only in a block, and where nothing but this entry is on its line.
    pub(crate) behind: Option<Behind>,
}

/// Where a new entry can be put behind another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The end of the line, with what stands there beside the value.
    pub(crate) at: usize,
    /// The columns in front of the key.
    pub(crate) indent: usize,
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// In single quotes.
    Single,
    /// In double quotes, as in JSON.
    Double,
    /// A block after `|` or `>`.
    Block,
    /// After a tag (`!!str`): a string whatever it looks like.
    Tagged,
    /// Nothing at all: `key:`.
    Empty,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Byte range.
    pub range: Range<usize>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

/// One document of a text.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its number in the text, from 0.
    pub index: usize,
    /// The root node.
    pub root: Rc<Node>,
    /// What an edit has to know of the text.
    pub(crate) writing: Writing,
}

/// What an edit has to know of the text of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Writing {
    /// Anchors that an alias uses, with how often the node is used in all; containers can be used in parts.
    pub(crate) shared: Vec<Shared>,
    /// Whether lines end in CR LF.
    pub(crate) crlf: bool,
    /// The bytes of the document that a copy of it needs; none where a copy would mean something else.
    pub(crate) copy: Option<Range<usize>>,
}

/// An anchored node that aliases use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) range: Range<usize>,
    pub(crate) uses: usize,
    pub(crate) scalar: bool,
}

impl Node {
    fn empty() -> Self {
        Self { content: Content::Scalar { text: String::new(), style: Style::Empty }, place: None }
    }

    /// Builds the tree of a live object. Null reads as empty.
    pub fn from_json(value: &Value) -> Self {
        let content = match value {
            Value::Null => return Self::empty(),
            Value::Bool(flag) => Content::Scalar { text: flag.to_string(), style: Style::Plain },
            Value::Number(number) => Content::Scalar { text: number.to_string(), style: Style::Plain },
            Value::String(text) => Content::Scalar { text: text.clone(), style: Style::Double },
            Value::Array(items) => {
                Content::Sequence(items.iter().map(|i| Rc::new(Self::from_json(i))).collect())
            }
            Value::Object(map) => Content::Mapping {
                entries: map
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_place: None,
                        value: Rc::new(Self::from_json(value)),
                        behind: None,
                    })
                    .collect(),
                flow: true,
            },
        };
        Self { content, place: None }
    }

    /// The text of a scalar; `None` for a collection and for nothing at all.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, style } if !is_null(text, *style) => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that is not empty.
    pub fn filled(&self) -> Option<&str> {
        self.text().filter(|text| !text.is_empty())
    }

    /// The value under a key, also through merge keys (`<<`).
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.get_within(key, MAX_DEPTH, &mut MAX_MERGES.clone())
    }

    fn get_within(&self, key: &str, depth: usize, merges: &mut usize) -> Option<&Node> {
        let Content::Mapping { entries, .. } = &self.content else { return None };
        // Kubernetes takes the last of two equal keys.
        if let Some(entry) = entries.iter().rev().find(|e| e.key == key) {
            return Some(&entry.value);
        }
        let depth = depth.checked_sub(1)?;
        for source in entries.iter().filter(|e| e.key == "<<").map(|e| &*e.value) {
            *merges = merges.checked_sub(1)?;
            let found = match &source.content {
                Content::Sequence(items) => items.iter().find_map(|item| item.get_within(key, depth, merges)),
                _ => source.get_within(key, depth, merges),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The value at a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Whether a Kubernetes client reads the value as true.
    pub fn is_true(&self) -> bool {
        self.to_json() == Some(Value::Bool(true))
    }

    /// The filled text at a path of keys.
    pub fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.filled()
    }

    /// The items of a sequence; none for anything else.
    pub fn items(&self) -> &[Rc<Node>] {
        match &self.content {
            Content::Sequence(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Mapping { entries, .. } => entries,
            _ => &[],
        }
    }
}

fn is_null(text: &str, style: Style) -> bool {
    style == Style::Empty || (style == Style::Plain && matches!(text, "null" | "~" | "Null" | "NULL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Document {
        let mut all = Vec::new();
        documents(text, |d| all.push(d.unwrap()));
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    #[test]
    fn places_are_byte_ranges_of_the_text() {
        let text = "\u{feff}# größe\r\na: \"ü\"\r\nb: {c: 'x'}\r\n";
        let document = one(text);
        let b = document.root.at(&["b", "c"]).unwrap();
        assert_eq!(&text[b.place.clone().unwrap().range], "'x'");
        assert_eq!(document.root.text_at(&["a"]), Some("ü"));
    }

    #[test]
    fn placeholders_are_text_wherever_they_stand() {
        let document = one("a: ${A:=\"x\"}\nb: [${B}, c]\nd: \"${D}\"\n");
        assert_eq!(document.root.text_at(&["a"]), Some("${A:=\"x\"}"));
        assert_eq!(document.root.get("b").unwrap().items()[0].text(), Some("${B}"));
        assert_eq!(document.root.text_at(&["d"]), Some("${D}"));
    }

    #[test]
    fn a_broken_document_hides_no_other() {
        let mut good = 0;
        let mut bad = Vec::new();
        documents("a: 1\n---\nb: - c\n d\n---\ne: 2\n", |d| match d {
            Ok(_) => good += 1,
            Err(error) => bad.push(error.line),
        });
        assert_eq!((good, bad.len()), (2, 1), "{bad:?}");
    }

    #[test]
    fn merge_keys_and_aliases_are_followed() {
        let document = one("base: &b {x: 1, y: &y 2}\nuse: {<<: *b, y: 3}\nz: *y\n");
        assert_eq!(document.root.text_at(&["use", "x"]), Some("1"));
        assert_eq!(document.root.text_at(&["use", "y"]), Some("3"));
        assert_eq!(document.root.text_at(&["z"]), Some("2"));
        assert_eq!(document.writing.shared.len(), 2);
    }

    #[test]
    fn aliases_of_aliases_cost_no_memory() {
        let mut text = "a0: &a0 [x, x]\n".to_owned();
        for n in 1..40 {
            let line = format!("a{n}: &a{n} [*a{}, *a{}]\n", n - 1, n - 1);
            text.push_str(&line);
        }
        assert_eq!(one(&text).root.to_json(), None);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let mut errors = 0;
        documents(&"[".repeat(5000), |d| errors += usize::from(d.is_err()));
        assert_eq!(errors, 1);
    }
}
