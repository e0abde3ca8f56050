//! The index of published images: what makes an old image recognisable, compact on disk.
//!
//! A text of tab-separated lines, so that it can be searched, compared and kept in Git. A line's first word says what
//! it is; `source` and `build` set the context of the lines that follow:
//!
//! ```text
//! bootwright-index  1
//! source  NAME  FORMAT  STREAM  OS-STREAM  RELEASE  LAST-MODIFIED  DISTRIBUTION  DEFAULT
//! build   VERSION  ARCHITECTURE
//! id      PLATFORM  REGION  ID
//! gcp     PROJECT  NAME  FAMILY  URL
//! azure   PLAN  GENERATION  PUBLISHER  OFFER  SKU  VERSION
//! blob    PLATFORM  URL
//! object  PLATFORM  REGION  OBJECT  BUCKET  URL
//! oci     PLATFORM  IMAGE  DIGEST-REF
//! file    PLATFORM  FORMAT  PART  SHA256  UNCOMPRESSED-SHA256  SIZE  UNCOMPRESSED-SIZE  LOCATION  SIGNATURE
//! ```
//!
//! Lines with another first word are passed over: an older program reads what it knows.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::catalog::{Artifact, Catalog, Distribution, Image, Source, SourceId};
use crate::document::Format;
use crate::{Architecture, ImageReference, MarketplaceImage, OsVersion};

const MAGIC: &str = "bootwright-index";
const GENERATION: &str = "1";

/// Why a text is not an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The first line is another.
    #[error("not an index of published images: expected a first line `{MAGIC}\\t{GENERATION}`")]
    NotIndex,
    /// The layout is of a later program.
    #[error(
        "the index is of generation {found}, this program reads {GENERATION}: use a newer program, or import again"
    )]
    Generation {
        /// What it says.
        found: String,
    },
    /// A line is damaged.
    #[error("line {line} of the index is damaged: {what}; import it again")]
    Damaged {
        /// Counted from 1.
        line: usize,
        /// What was expected.
        what: &'static str,
    },
}

/// Writes a catalog as an index. What several documents say alike is written once, under the first that says it.
pub fn write_index(catalog: &Catalog) -> String {
    let mut out = format!("{MAGIC}\t{GENERATION}\n");
    let mut seen: HashSet<String> = HashSet::new();
    for (n, source) in catalog.sources.iter().enumerate() {
        let id = SourceId(u32::try_from(n).unwrap_or(u32::MAX));
        let mut body = String::new();
        let mut context = String::new();
        let mut push = |build: &str, line: String| {
            // The same place said again by a later document adds nothing.
            if seen.insert(format!("{build}\n{line}")) {
                if context != build {
                    build.clone_into(&mut context);
                    body.push_str(build);
                    body.push('\n');
                }
                body.push_str(&line);
                body.push('\n');
            }
        };
        for image in catalog.images.iter().filter(|i| i.source == id) {
            push(&build_line(image.version.as_deref(), image.architecture.as_ref()), image_line(image));
        }
        for artifact in catalog.artifacts.iter().filter(|a| a.source == id) {
            push(
                &build_line(artifact.version.as_deref(), artifact.architecture.as_ref()),
                file_line(artifact),
            );
        }
        if !body.is_empty() {
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            line(
                &mut out,
                &[
                    "source",
                    &source.name,
                    format_word(source.format),
                    &text(&source.stream),
                    &text(&source.os_stream),
                    &text(&source.release_version),
                    &text(&source.last_modified),
                    source.distribution.word(),
                    if source.default { "default" } else { "" },
                ],
            );
            out.push_str(&body);
        }
    }
    out
}

/// Reads an index into a catalog.
pub fn read_index(text: &str) -> Result<Catalog, IndexError> {
    let mut lines = text.lines().enumerate();
    let first = lines.next().map(|(_, first)| first).unwrap_or_default();
    match first.split_once('\t') {
        Some((MAGIC, GENERATION)) => {}
        Some((MAGIC, found)) => {
            return Err(IndexError::Generation { found: found.chars().take(20).collect() });
        }
        _ => return Err(IndexError::NotIndex),
    }
    let mut reader = Reader::default();
    for (n, line) in lines {
        reader.line(line).map_err(|what| IndexError::Damaged { line: n + 1, what })?;
    }
    Ok(reader.catalog)
}

fn build_line(version: Option<&OsVersion>, architecture: Option<&Architecture>) -> String {
    fields(&["build", version.map_or("", OsVersion::as_str), architecture.map_or("", Architecture::as_str)])
}

fn image_line(image: &Image) -> String {
    let platform = &*image.platform;
    let region = image.region.as_deref().unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    match &image.reference {
        ImageReference::Id { id } => fields(&["id", platform, region, id]),
        ImageReference::Gcp { project, name, family, url } => {
            fields(&["gcp", &text(project), name, &text(family), &text(url)])
        }
        ImageReference::Marketplace(m) => {
            fields(&["azure", &m.plan, &m.generation.to_string(), &m.publisher, &m.offer, &m.sku, &m.version])
        }
        ImageReference::Blob { url } => fields(&["blob", platform, url]),
        ImageReference::Object { object, bucket, url } => {
            fields(&["object", platform, region, &text(object), &text(bucket), url])
        }
        ImageReference::Container { image, digest_ref } => {
            fields(&["oci", platform, image, &text(digest_ref)])
        }
    }
}

fn file_line(artifact: &Artifact) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let number = |value: Option<u64>| value.map(|n| n.to_string()).unwrap_or_default();
    fields(&[
        "file",
        &artifact.platform,
        &artifact.format,
        &artifact.part,
        &text(&artifact.sha256),
        &text(&artifact.uncompressed_sha256),
        &number(artifact.size),
        &number(artifact.uncompressed_size),
        &artifact.location,
        &text(&artifact.signature),
    ])
}

fn line(out: &mut String, values: &[&str]) {
    let _ = writeln!(out, "{}", fields(values));
}

fn fields(values: &[&str]) -> String {
    // Control characters have no business in any of these values, and would break the line.
    let clean = |v: &&str| v.replace(|c: char| c.is_control(), " ");
    values.iter().map(clean).collect::<Vec<_>>().join("\t")
}

fn format_word(format: Format) -> &'static str {
    match format {
        Format::Stream => "stream",
        Format::Meta => "meta",
        Format::InstallerRhcos => "installer-rhcos",
        Format::Marketplace => "marketplace",
        Format::Release => "release",
        Format::ReleaseIndex => "release-index",
        Format::Updates => "updates",
        Format::ConfigMap => "config-map",
        Format::Index => "index",
    }
}

fn format_of(word: &str) -> Format {
    let all = [
        Format::Stream,
        Format::Meta,
        Format::InstallerRhcos,
        Format::Marketplace,
        Format::Release,
        Format::ReleaseIndex,
        Format::Updates,
        Format::ConfigMap,
    ];
    all.into_iter().find(|f| format_word(*f) == word).unwrap_or(Format::Index)
}

#[derive(Default)]
struct Reader {
    catalog: Catalog,
    source: Option<SourceId>,
    version: Option<Arc<OsVersion>>,
    architecture: Option<Architecture>,
    names: HashSet<Arc<str>>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let mut values = line.split('\t');
        let kind = values.next().unwrap_or_default();
        let mut next = || values.next().ok_or("expected more fields");
        match kind {
            "source" => {
                let name = next()?.into();
                let format = format_of(next()?);
                let (stream, os_stream) = (text(next()?), text(next()?));
                let (release_version, last_modified) = (text(next()?), text(next()?));
                let distribution = Distribution::from_word(next()?);
                let default = next()? == "default";
                let source = Source {
                    name,
                    format,
                    stream,
                    os_stream,
                    release_version,
                    stamped_release: None,
                    last_modified,
                    distribution,
                    default,
                };
                self.source = Some(self.catalog.add_source(source));
            }
            "build" => {
                let version = next()?;
                self.version = match version {
                    "" => None,
                    text => Some(Arc::new(text.parse().map_err(|_| "expected an OS version")?)),
                };
                self.architecture = text(next()?).map(Architecture::from);
            }
            "id" => {
                let (platform, region) = (next()?, next()?);
                let reference = ImageReference::Id { id: next()?.to_owned() };
                self.image(platform, region, reference)?;
            }
            "gcp" => {
                let (project, name) = (text(next()?), next()?.to_owned());
                let (family, url) = (text(next()?), text(next()?));
                self.image("gcp", "", ImageReference::Gcp { project, name, family, url })?;
            }
            "azure" => {
                let plan = next()?.to_owned();
                let generation = next()?.parse().map_err(|_| "expected a generation")?;
                let (publisher, offer) = (next()?.to_owned(), next()?.to_owned());
                let (sku, version) = (next()?.to_owned(), next()?.to_owned());
                let image = MarketplaceImage { plan, generation, publisher, offer, sku, version };
                self.image("azure", "", ImageReference::Marketplace(image))?;
            }
            "blob" => {
                let platform = next()?;
                self.image(platform, "", ImageReference::Blob { url: next()?.to_owned() })?;
            }
            "object" => {
                let (platform, region) = (next()?, next()?);
                let (object, bucket, url) = (text(next()?), text(next()?), next()?.to_owned());
                self.image(platform, region, ImageReference::Object { object, bucket, url })?;
            }
            "oci" => {
                let platform = next()?;
                let (image, digest_ref) = (next()?.to_owned(), text(next()?));
                self.image(platform, "", ImageReference::Container { image, digest_ref })?;
            }
            "file" => {
                let source = self.source.ok_or("expected a source line before")?;
                let (platform, format, part) = (self.name(next()?), self.name(next()?), self.name(next()?));
                let (sha256, uncompressed_sha256) = (text(next()?), text(next()?));
                let size = next()?.parse().ok();
                let uncompressed_size = next()?.parse().ok();
                let (location, signature) = (next()?.to_owned(), text(next()?));
                self.catalog.artifacts.push(Artifact {
                    platform,
                    architecture: self.architecture.clone(),
                    format,
                    part,
                    version: self.version.clone(),
                    location,
                    signature,
                    sha256,
                    size,
                    uncompressed_sha256,
                    uncompressed_size,
                    source,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn image(&mut self, platform: &str, region: &str, reference: ImageReference) -> Result<(), &'static str> {
        let source = self.source.ok_or("expected a source line before")?;
        let (platform, region) = (self.name(platform), text(region).map(|r| self.name(&r)));
        self.catalog.images.push(Image {
            platform,
            architecture: self.architecture.clone(),
            region,
            version: self.version.clone(),
            reference,
            source,
        });
        Ok(())
    }

    /// Names repeat thousands of times and are shared.
    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = name.into();
        self.names.insert(Arc::clone(&shared));
        shared
    }
}

fn text(value: &str) -> Option<String> {
    (!value.is_empty()).then(|| value.to_owned())
}
