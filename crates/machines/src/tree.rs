//! One node tree for YAML (with byte offsets) and for live JSON (without).

use std::ops::Range;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, StructureStyle, options};
use serde_json::Value;

/// Deeper nesting is no manifest, and would cost stack where trees are walked.
const MAX_DEPTH: usize = 128;
/// Nodes that [`Node::to_json`] makes at most: aliases of aliases can name more nodes than memory holds.
const MAX_JSON_NODES: usize = 200_000;

/// A node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What stands there.
    pub content: Content,
    /// Where it stands in the text; `None` in a live object.
    pub place: Option<Place>,
    /// The anchor on it that some alias uses.
    pub(crate) anchor: Option<usize>,
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
    /// Anchors that an alias uses, with how often the node is used in all; containers can be used in parts.
    pub(crate) shared: Vec<Shared>,
}

/// An anchored node that aliases use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared {
    pub(crate) range: Range<usize>,
    pub(crate) uses: usize,
    pub(crate) scalar: bool,
}

/// A text that is not YAML, or a document of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

/// Parses all documents of a text, and hands each to `each` before the next is built. A document that does not parse
/// is handed over as its error, and the following documents are still read.
///
/// Placeholders of clusterctl (`${NAME}`, `${NAME:=default}`) are read as text wherever they stand.
pub fn documents(text: &str, mut each: impl FnMut(Result<Document, ParseError>)) {
    if !text.contains("${") {
        return read(text, None, &mut each);
    }
    let mut plain: Vec<Result<Document, ParseError>> = Vec::new();
    read(text, None, &mut |document| plain.push(document));
    // Only where a placeholder breaks the syntax (in a flow collection) is it worth reading under a mask.
    if plain.iter().any(Result::is_err) {
        let masked = mask(text);
        let mut under_mask: Vec<Result<Document, ParseError>> = Vec::new();
        read(&masked, Some(text), &mut |document| under_mask.push(document));
        if under_mask.iter().filter(|d| d.is_err()).count() < plain.iter().filter(|d| d.is_err()).count() {
            return under_mask.into_iter().for_each(each);
        }
    }
    plain.into_iter().for_each(each);
}

/// Puts letters of the same length in the place of each placeholder.
fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        masked.push_str(before);
        let Some((inside, behind)) = after.split_once('}').filter(|(inside, _)| !inside.contains('\n'))
        else {
            masked.push_str("${");
            rest = after;
            continue;
        };
        masked.extend(std::iter::repeat_n('x', inside.len() + "${}".len()));
        rest = behind;
    }
    masked.push_str(rest);
    masked
}

fn read(text: &str, original: Option<&str>, each: &mut dyn FnMut(Result<Document, ParseError>)) {
    let options = options! { emit_comments: false };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut index = 0;
    loop {
        let mut builder = Builder { text, original, anchors: Vec::new() };
        match builder.document(&mut parser) {
            Ok(Some(root)) => {
                each(Ok(Document { index, root, shared: builder.shared() }));
                index += 1;
            }
            Ok(None) => return,
            Err(error) => {
                each(Err(error));
                index += 1;
                if !matches!(parser.proceed_next_document(), Ok(true)) {
                    return;
                }
            }
        }
    }
}

struct Builder<'t> {
    text: &'t str,
    /// The text without the mask over its placeholders, where it is read under one.
    original: Option<&'t str>,
    anchors: Vec<(usize, Rc<Node>, usize)>,
}

/// A collection that is still being read.
struct Open {
    content: Content,
    key: Option<(String, Option<Place>)>,
    start: Place,
    anchor: usize,
}

impl Builder<'_> {
    /// The next document, `None` at the end of the text.
    fn document<'i, I>(&mut self, parser: &mut Parser<'i, I>) -> Result<Option<Rc<Node>>, ParseError>
    where
        I: granit_parser::BorrowedInput<'i>,
    {
        let mut stack: Vec<Open> = Vec::new();
        let mut root: Option<Rc<Node>> = None;
        for event in parser {
            let (event, span) = event.map_err(|error| {
                let mark = error.marker();
                ParseError { line: mark.line(), column: mark.col() + 1, message: error.info() }
            })?;
            let place = || {
                let range = span.byte_range().unwrap_or_default();
                Place { range, line: span.start.line(), column: span.start.col() + 1 }
            };
            let node = match event {
                Event::StreamEnd => return Ok(None),
                Event::DocumentEnd => {
                    return Ok(Some(root.unwrap_or_else(|| Rc::new(Node::empty()))));
                }
                Event::MappingStart(style, anchor, _) => {
                    let flow = style == StructureStyle::Flow;
                    let content = Content::Mapping { entries: Vec::new(), flow };
                    open(&mut stack, content, place(), anchor)?;
                    continue;
                }
                Event::SequenceStart(_, anchor, _) => {
                    open(&mut stack, Content::Sequence(Vec::new()), place(), anchor)?;
                    continue;
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    let Some(open) = stack.pop() else { continue };
                    let end = span.byte_range().map_or(open.start.range.end, |r| r.end);
                    let place = Place { range: open.start.range.start..end, ..open.start };
                    self.finish(Node { content: open.content, place: Some(place), anchor: None }, open.anchor)
                }
                Event::Scalar(text, style, anchor, _) => {
                    let mut node = self.scalar(&text, style, place());
                    if matches!(node.content, Content::Scalar { style: Style::Empty, .. }) {
                        node.place = self.behind_colon(stack.last()).filter(|_| anchor == 0);
                    }
                    self.finish(node, anchor)
                }
                Event::Alias(anchor) => match self.anchors.iter_mut().find(|(id, ..)| *id == anchor) {
                    Some((_, node, uses)) => {
                        *uses += 1;
                        Rc::clone(node)
                    }
                    // An alias inside its own anchor.
                    None => Rc::new(Node::empty()),
                },
                _ => continue,
            };
            match stack.last_mut() {
                Some(open) => attach(open, node),
                None => root = Some(node),
            }
        }
        Ok(None)
    }

    fn scalar(&self, text: &str, style: ScalarStyle, place: Place) -> Node {
        let style = match style {
            ScalarStyle::Plain if place.range.is_empty() => Style::Empty,
            ScalarStyle::Plain => Style::Plain,
            ScalarStyle::SingleQuoted => Style::Single,
            ScalarStyle::DoubleQuoted => Style::Double,
            ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        };
        let unmasked =
            self.original.and_then(|t| t.get(place.range.clone())).filter(|slice| slice.contains("${"));
        let text = match (style, unmasked) {
            (Style::Empty, _) => String::new(),
            (_, Some(slice)) => slice.trim_matches(['"', '\'']).to_owned(),
            (_, None) => text.to_owned(),
        };
        Node { content: Content::Scalar { text, style }, place: Some(place), anchor: None }
    }

    /// Where a value goes that a key does not have yet; the parser puts it in front of the colon.
    fn behind_colon(&self, open: Option<&Open>) -> Option<Place> {
        let (_, key) = open?.key.as_ref()?;
        let key = key.as_ref()?;
        let rest = self.text.get(key.range.end..)?;
        let behind = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
        let at = self.text.len() - behind.len();
        let column = key.column + self.text.get(key.range.start..at)?.chars().count();
        Some(Place { range: at..at, line: key.line, column })
    }

    fn finish(&mut self, mut node: Node, anchor: usize) -> Rc<Node> {
        if anchor == 0 {
            return Rc::new(node);
        }
        node.anchor = Some(anchor);
        let node = Rc::new(node);
        self.anchors.push((anchor, Rc::clone(&node), 1));
        node
    }

    fn shared(&self) -> Vec<Shared> {
        let used = self.anchors.iter().filter(|(_, _, uses)| *uses > 1);
        used.map(|(_, node, uses)| Shared {
            range: node.place.as_ref().map(|p| p.range.clone()).unwrap_or_default(),
            uses: *uses,
            scalar: matches!(node.content, Content::Scalar { .. }),
        })
        .collect()
    }
}

fn open(stack: &mut Vec<Open>, content: Content, start: Place, anchor: usize) -> Result<(), ParseError> {
    if stack.len() >= MAX_DEPTH {
        let message = format!("nested deeper than {MAX_DEPTH} levels");
        return Err(ParseError { line: start.line, column: start.column, message });
    }
    stack.push(Open { content, key: None, start, anchor });
    Ok(())
}

fn attach(open: &mut Open, node: Rc<Node>) {
    match &mut open.content {
        Content::Sequence(items) => items.push(node),
        Content::Mapping { entries, .. } => match open.key.take() {
            Some((key, key_place)) => entries.push(Entry { key, key_place, value: node }),
            None => open.key = Some((node.text().unwrap_or_default().to_owned(), node.place.clone())),
        },
        Content::Scalar { .. } => {}
    }
}

impl Node {
    fn empty() -> Self {
        Self {
            content: Content::Scalar { text: String::new(), style: Style::Empty },
            place: None,
            anchor: None,
        }
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
                    })
                    .collect(),
                flow: true,
            },
        };
        Self { content, place: None, anchor: None }
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
        self.get_within(key, MAX_DEPTH)
    }

    fn get_within(&self, key: &str, depth: usize) -> Option<&Node> {
        let Content::Mapping { entries, .. } = &self.content else { return None };
        // Kubernetes takes the last of two equal keys.
        if let Some(entry) = entries.iter().rev().find(|e| e.key == key) {
            return Some(&entry.value);
        }
        let depth = depth.checked_sub(1)?;
        let merged = entries.iter().filter(|e| e.key == "<<").map(|e| &*e.value);
        for source in merged {
            let found = match &source.content {
                Content::Sequence(items) => items.iter().find_map(|item| item.get_within(key, depth)),
                _ => source.get_within(key, depth),
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

    /// The value as JSON, as a Kubernetes client reads YAML; `None` where aliases make it larger than any manifest.
    pub fn to_json(&self) -> Option<Value> {
        self.json(&mut MAX_JSON_NODES.clone())
    }

    fn json(&self, budget: &mut usize) -> Option<Value> {
        *budget = budget.checked_sub(1)?;
        Some(match &self.content {
            Content::Sequence(items) => {
                Value::Array(items.iter().map(|item| item.json(budget)).collect::<Option<_>>()?)
            }
            Content::Mapping { entries, .. } => {
                let mut map = serde_json::Map::new();
                for entry in entries {
                    let value = entry.value.json(budget)?;
                    match value {
                        Value::Object(merged) if entry.key == "<<" => {
                            for (key, value) in merged {
                                map.entry(key).or_insert(value);
                            }
                        }
                        value => {
                            map.insert(entry.key.clone(), value);
                        }
                    }
                }
                Value::Object(map)
            }
            Content::Scalar { text, style: Style::Plain } => plain_json(text),
            Content::Scalar { style: Style::Empty, .. } => Value::Null,
            Content::Scalar { text, .. } => Value::String(text.clone()),
        })
    }
}

fn is_null(text: &str, style: Style) -> bool {
    style == Style::Empty || (style == Style::Plain && matches!(text, "null" | "~" | "Null" | "NULL"))
}

/// The YAML core schema for an unquoted scalar.
fn plain_json(text: &str) -> Value {
    match text {
        "null" | "~" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => {
            let numeric = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+' || c == '.');
            if numeric && let Ok(integer) = text.parse::<i64>() {
                return Value::from(integer);
            }
            let float = numeric.then(|| text.parse::<f64>().ok()).flatten();
            match float.and_then(serde_json::Number::from_f64) {
                Some(number) => Value::Number(number),
                None => Value::String(text.to_owned()),
            }
        }
    }
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
        assert_eq!(document.shared.len(), 2);
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
