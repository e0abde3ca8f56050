//! From text to trees.

use std::ops::Range;
use std::rc::Rc;

use granit_parser::{BorrowedInput, Event, Parser, ScalarStyle, StructureStyle, options};
use serde::de::IgnoredAny;

use super::{Behind, Content, Document, Entry, MAX_DEPTH, Node, Place, Shared, Style, Writing};

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
/// JSON is read too, also several values one after the other. Placeholders of clusterctl (`${NAME}`,
/// `${NAME:=default}`) are read as text wherever they stand.
pub fn documents(text: &str, mut each: impl FnMut(Result<Document, ParseError>)) {
    if let Some(values) = json_values(text) {
        for (index, range) in values.into_iter().enumerate() {
            read_json(text, index, &range, &mut each);
        }
        return;
    }
    if !text.contains("${") {
        return read(text, Base::default(), None, &mut each);
    }
    let mut plain: Vec<Result<Document, ParseError>> = Vec::new();
    read(text, Base::default(), None, &mut |document| plain.push(document));
    let errors = |documents: &[Result<Document, ParseError>]| documents.iter().filter(|d| d.is_err()).count();
    // Only where a placeholder breaks the syntax (in a flow collection) is it worth reading under a mask.
    if errors(&plain) > 0 {
        let masked = mask(text);
        let mut under_mask: Vec<Result<Document, ParseError>> = Vec::new();
        read(&masked, Base::default(), Some(text), &mut |document| under_mask.push(document));
        if errors(&under_mask) < errors(&plain) {
            return under_mask.into_iter().for_each(each);
        }
    }
    plain.into_iter().for_each(each);
}

/// The byte ranges of the values, where the whole text is JSON: one value, or several one after the other.
fn json_values(text: &str) -> Option<Vec<Range<usize>>> {
    let json = text.trim_start_matches('\u{feff}');
    if !json.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let start = text.len() - json.len();
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<IgnoredAny>();
    let mut ranges = Vec::new();
    let mut done = 0;
    while let Some(value) = values.next() {
        value.ok()?;
        let end = values.byte_offset();
        ranges.push(start + done..start + end);
        done = end;
    }
    Some(ranges)
}

/// One JSON value: by the YAML parser for its places; where YAML is stricter than JSON, without any.
fn read_json(
    text: &str,
    index: usize,
    range: &Range<usize>,
    each: &mut dyn FnMut(Result<Document, ParseError>),
) {
    let Some(slice) = text.get(range.clone()) else { return };
    let line = text.get(..range.start).map_or(0, |before| before.matches('\n').count());
    let mut found = None;
    read(slice, Base { offset: range.start, line, index }, None, &mut |document| {
        found.get_or_insert(document);
    });
    match (found, serde_json::from_str(slice)) {
        (Some(Ok(document)), _) => each(Ok(document)),
        (_, Ok(value)) => {
            let root = Rc::new(Node::from_json(&value));
            each(Ok(Document { index, root, writing: Writing::default() }));
        }
        (Some(error), _) => each(error),
        (None, Err(_)) => {}
    }
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

/// Where a text begins in its file.
#[derive(Debug, Clone, Copy, Default)]
struct Base {
    offset: usize,
    line: usize,
    index: usize,
}

fn read(text: &str, base: Base, original: Option<&str>, each: &mut dyn FnMut(Result<Document, ParseError>)) {
    let options = options! { emit_comments: false };
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut index = base.index;
    let crlf = text.contains("\r\n");
    // A directive would have to stand in front of a copy too.
    let directives = text.starts_with('%') || text.contains("\n%");
    loop {
        let mut builder = Builder { text, base, original, anchors: Vec::new() };
        match builder.document(&mut parser) {
            Ok(Some(root)) => {
                let copy = builder.copy(&root).filter(|_| !directives);
                each(Ok(Document { index, root, writing: Writing { shared: builder.shared(), crlf, copy } }));
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
    base: Base,
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
    fn document<'i, I: BorrowedInput<'i>>(
        &mut self,
        parser: &mut Parser<'i, I>,
    ) -> Result<Option<Rc<Node>>, ParseError> {
        let mut stack: Vec<Open> = Vec::new();
        let mut root: Option<Rc<Node>> = None;
        for event in parser {
            let (event, span) = event.map_err(|error| {
                let mark = error.marker();
                let (line, column) = (mark.line() + self.base.line, mark.col() + 1);
                ParseError { line, column, message: error.info() }
            })?;
            let base = self.base;
            let place = || {
                let range = span.byte_range().unwrap_or_default();
                let range = range.start + base.offset..range.end + base.offset;
                Place { range, line: span.start.line() + base.line, column: span.start.col() + 1 }
            };
            let node = match event {
                Event::StreamEnd => return Ok(None),
                Event::DocumentEnd => {
                    return Ok(Some(root.unwrap_or_else(|| Rc::new(Node::empty()))));
                }
                Event::MappingStart(style, anchor, _) => {
                    let flow = style == StructureStyle::Flow;
                    open(&mut stack, Content::Mapping { entries: Vec::new(), flow }, place(), anchor)?;
                    continue;
                }
                Event::SequenceStart(_, anchor, _) => {
                    open(&mut stack, Content::Sequence(Vec::new()), place(), anchor)?;
                    continue;
                }
                Event::MappingEnd | Event::SequenceEnd => {
                    let Some(open) = stack.pop() else { continue };
                    let range = open.start.range.start..place().range.end.max(open.start.range.end);
                    self.finish(
                        Node { content: open.content, place: Some(Place { range, ..open.start }) },
                        open.anchor,
                    )
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let mut node = self.scalar(&text, style, place(), tag.is_some());
                    if matches!(node.content, Content::Scalar { style: Style::Empty, .. }) {
                        // An anchor or a tag would stand behind the value then.
                        node.place = self.behind_colon(stack.last()).filter(|_| anchor == 0 && tag.is_none());
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
                Some(open) => self.attach(open, node),
                None => root = Some(node),
            }
        }
        Ok(None)
    }

    fn scalar(&self, text: &str, style: ScalarStyle, place: Place, tagged: bool) -> Node {
        let style = match style {
            ScalarStyle::Plain if place.range.is_empty() => Style::Empty,
            ScalarStyle::Plain if tagged => Style::Tagged,
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
        Node { content: Content::Scalar { text, style }, place: Some(place) }
    }

    /// A piece of the text by the file's bytes.
    fn slice(&self, range: Range<usize>) -> Option<&str> {
        let base = self.base.offset;
        self.text.get(range.start.checked_sub(base)?..range.end.checked_sub(base)?)
    }

    fn rest(&self, from: usize) -> Option<&str> {
        self.text.get(from.checked_sub(self.base.offset)?..)
    }

    fn before(&self, to: usize) -> Option<&str> {
        self.text.get(..to.checked_sub(self.base.offset)?)
    }

    /// Where a value goes that a key does not have yet; the parser puts it in front of the colon.
    fn behind_colon(&self, open: Option<&Open>) -> Option<Place> {
        let (_, key) = open?.key.as_ref()?;
        let key = key.as_ref()?;
        let rest = self.rest(key.range.end)?;
        let behind = rest.trim_start_matches([' ', '\t']).strip_prefix(':')?;
        let at = key.range.end + rest.len() - behind.len();
        let column = key.column + self.slice(key.range.start..at)?.chars().count();
        Some(Place { range: at..at, line: key.line, column })
    }

    fn attach(&self, open: &mut Open, node: Rc<Node>) {
        match &mut open.content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping { entries, flow } => match open.key.take() {
                Some((key, key_place)) => {
                    let behind = key_place.as_ref().filter(|_| !*flow).and_then(|k| self.behind(k, &node));
                    entries.push(Entry { key, key_place, value: node, behind });
                }
                None => open.key = Some((node.text().unwrap_or_default().to_owned(), node.place.clone())),
            },
            Content::Scalar { .. } => {}
        }
    }

    /// The line of an entry ends the entry, where key and value stand on it alone.
    fn behind(&self, key: &Place, value: &Node) -> Option<Behind> {
        let Content::Scalar { style, .. } = &value.content else { return None };
        let place = value.place.as_ref()?;
        if *style == Style::Block
            || place.line != key.line
            || self.slice(key.range.start..place.range.end)?.contains('\n')
        {
            return None;
        }
        let start = self.before(key.range.start)?.rsplit('\n').next()?;
        let plain = start.chars().all(|c| c == ' ' || c == '-');
        let rest = self.rest(place.range.end)?;
        let line = rest.split('\n').next()?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        // A lone carriage return ends a line too, and something else may stand behind it.
        let comment_only = line.trim_start().is_empty() || line.trim_start().starts_with('#');
        let plain = plain && comment_only && !line.contains('\r');
        let at = place.range.end + line.len();
        plain.then_some(Behind { at, indent: start.len() })
    }

    /// The bytes that a copy of the document needs: whole lines, from its first key to the last thing in it.
    fn copy(&self, root: &Node) -> Option<Range<usize>> {
        let Content::Mapping { flow: false, .. } = &root.content else { return None };
        let start = root.entries().first()?.key_place.as_ref()?.range.start;
        let line = self.before(start)?.rsplit('\n').next()?;
        let line = line.trim_start_matches('\u{feff}');
        let mut end = start;
        self.last_byte(root, &mut end, &mut 100_000);
        let rest = self.rest(end)?;
        let tail =
            if self.slice(end.checked_sub(1)?..end) == Some("\n") { "" } else { rest.split('\n').next()? };
        line.chars().all(|c| c == ' ').then(|| start - line.len()..end + tail.trim_end().len())
    }

    /// The end of the last scalar or flow collection; a block collection's own end lies behind what follows it.
    fn last_byte(&self, node: &Node, end: &mut usize, budget: &mut usize) {
        let Some(left) = budget.checked_sub(1) else { return };
        *budget = left;
        let place = node.place.as_ref();
        let closed = match &node.content {
            Content::Mapping { flow, entries } => {
                for entry in entries {
                    if let Some(key) = &entry.key_place {
                        // The colon belongs to the key.
                        *end = (*end).max(key.range.end + 1);
                    }
                    self.last_byte(&entry.value, end, budget);
                }
                *flow
            }
            Content::Sequence(items) => {
                for item in items {
                    self.last_byte(item, end, budget);
                }
                place.is_some_and(|p| self.slice(p.range.end.saturating_sub(1)..p.range.end) == Some("]"))
            }
            Content::Scalar { .. } => true,
        };
        if let Some(place) = place.filter(|_| closed) {
            *end = (*end).max(place.range.end);
        }
    }

    fn finish(&mut self, node: Node, anchor: usize) -> Rc<Node> {
        let node = Rc::new(node);
        if anchor != 0 {
            self.anchors.push((anchor, Rc::clone(&node), 1));
        }
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
