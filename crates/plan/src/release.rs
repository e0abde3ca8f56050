//! The release that machine sets should follow: which image belongs to a place.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use metadata::{Architecture, Artifact, Catalog, Format, Image, ImageReference, OsVersion, Source, SourceId};

/// A catalog, ready to be asked for images by place.
pub(crate) struct Release<'a> {
    pub(crate) catalog: &'a Catalog,
    images: HashMap<(&'a str, &'a Architecture), Vec<&'a Image>>,
    artifacts: HashMap<(&'a str, &'a Architecture), Vec<&'a Artifact>>,
}

/// Why the release has no image for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The asked OS stream is not in the metadata.
    Stream { asked: String, have: Vec<String> },
    /// There are several OS streams, and none is the default.
    StreamUnknown { have: Vec<String> },
    /// No image of the platform at all.
    Platform,
    /// None for the architecture.
    Architecture { have: Vec<String> },
    /// None in the region.
    Region { have: usize },
    /// Two different ones.
    Ambiguous { one: String, other: String },
}

/// Which sources a set's OS stream selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamChoice {
    /// The stream's name; none for metadata without names.
    pub(crate) name: Option<String>,
    sources: Vec<bool>,
}

impl StreamChoice {
    fn holds(&self, id: SourceId) -> bool {
        self.sources.get(id.index()).copied().unwrap_or(false)
    }
}

/// What is followed: a release, its sources of one OS stream, and under a pin the one build of them.
#[derive(Clone)]
pub(crate) struct Target<'s, 'a> {
    pub(crate) release: &'s Release<'a>,
    pub(crate) stream: StreamChoice,
    pub(crate) build: Option<OsVersion>,
}

impl<'a> Target<'_, 'a> {
    /// The one image of a place.
    pub(crate) fn image(
        &self,
        platform: &str,
        architecture: &Architecture,
        select: impl Fn(&Image) -> bool,
        in_region: impl Fn(&Image) -> bool,
    ) -> Result<&'a Image, Missing> {
        let pinned = |image: &Image| match (&self.build, &image.version) {
            (None, _) => self.of_stream(image),
            // The marketplace has versions of its own, which trail those of builds: none newer than the pin.
            (Some(build), Some(version)) if matches!(image.reference, ImageReference::Marketplace(_)) => {
                self.of_stream(image) && version.compare(build).is_some_and(Ordering::is_le)
            }
            (Some(build), version) => version.as_deref() == Some(build),
        };
        self.release.image(&self.stream, platform, architecture, |i| pinned(i) && select(i), in_region)
    }

    /// A marketplace file stands beside streams and names none; its versions tell the RHEL that they are of.
    fn of_stream(&self, image: &Image) -> bool {
        let named =
            self.stream.name.as_deref().and_then(|name| name.strip_prefix("rhel-")?.parse::<u32>().ok());
        let own = image.version.as_ref().and_then(|v| v.rhel()).map(|(major, _)| major);
        let market = matches!(image.reference, ImageReference::Marketplace(_));
        !market || named.zip(own).is_none_or(|(named, own)| named == own)
    }

    /// The artifacts of a platform and architecture.
    pub(crate) fn artifacts(&self, platform: &str, architecture: &Architecture) -> Vec<&'a Artifact> {
        let all = self.release.artifacts(&self.stream, platform, architecture);
        all.filter(|a| self.build.is_none() || a.version.as_deref() == self.build.as_ref()).collect()
    }

    /// The newest version that there is for a platform and architecture.
    pub(crate) fn newest(&self, platform: &str, architecture: &Architecture) -> Option<&'a OsVersion> {
        self.release.newest(&self.stream, platform, architecture)
    }
}

impl<'a> Release<'a> {
    pub(crate) fn new(catalog: &'a Catalog) -> Self {
        let mut images: HashMap<_, Vec<&Image>> = HashMap::new();
        for image in &catalog.images {
            if let Some(architecture) = &image.architecture {
                images.entry((&*image.platform, architecture)).or_default().push(image);
            }
        }
        let mut artifacts: HashMap<_, Vec<&Artifact>> = HashMap::new();
        for artifact in &catalog.artifacts {
            if let Some(architecture) = &artifact.architecture {
                artifacts.entry((&*artifact.platform, architecture)).or_default().push(artifact);
            }
        }
        Self { catalog, images, artifacts }
    }

    /// The release with the sources that a pin names, by OS version or by the OpenShift version of the release that
    /// carries them; of these, the sources of the OS stream that is asked for.
    pub(crate) fn pinned(&self, pin: &str, asked: Option<&str>) -> Option<Result<Target<'_, 'a>, Missing>> {
        let catalog = self.catalog;
        let build = pin.parse::<OsVersion>().ok();
        let is_build = |v: Option<&OsVersion>| build.is_some() && v == build.as_ref();
        let images = catalog.images.iter().filter(|i| is_build(i.version.as_deref())).map(|i| i.source);
        let artifacts = catalog.artifacts.iter().filter(|a| is_build(a.version.as_deref())).map(|a| a.source);
        let holding: HashSet<SourceId> = images.chain(artifacts).collect();
        let named: Vec<bool> = catalog
            .sources
            .iter()
            .enumerate()
            .map(|(n, s)| {
                s.release_version.as_deref() == Some(pin) || holding.iter().any(|id| id.index() == n)
            })
            .collect();
        if !named.contains(&true) {
            return None;
        }
        let held = || catalog.sources.iter().zip(&named).filter(|(_, named)| **named).map(|(s, _)| s);
        let mut streams: Vec<&str> = held().filter_map(|s| s.os_stream.as_deref()).collect();
        streams.sort_unstable();
        streams.dedup();
        let have = || streams.iter().map(|s| (*s).to_owned()).collect();
        let default =
            held().find(|s| s.default && self.stream(None).is_ok()).and_then(|s| s.os_stream.as_deref());
        let name = match (asked, streams.as_slice()) {
            (Some(asked), _) if streams.contains(&asked) => Some(asked),
            (Some(asked), _) => return Some(Err(Missing::Stream { asked: asked.to_owned(), have: have() })),
            (None, []) => None,
            // The pinned build is of one stream; a set without a label is of the metadata's default, if that is known.
            (None, [only]) => match self.stream(None) {
                Ok(StreamChoice { name: Some(default), .. })
                    if default != *only && catalog.os_streams().len() > 1 =>
                {
                    return Some(Err(Missing::Stream { asked: default, have: have() }));
                }
                _ => Some(*only),
            },
            (None, _) if default.is_some() => default,
            (None, _) => return Some(Err(Missing::StreamUnknown { have: have() })),
        };
        let sources = catalog.sources.iter().zip(named).map(|(source, named)| {
            let of_stream = name.is_none() || source.os_stream.as_deref() == name;
            (named && of_stream) || source.format == Format::Marketplace
        });
        let stream = StreamChoice { name: name.map(str::to_owned), sources: sources.collect() };
        Some(Ok(Target { release: self, stream, build }))
    }

    /// The sources that an OS stream names; without a name, those of the metadata's default.
    pub(crate) fn stream(&self, asked: Option<&str>) -> Result<StreamChoice, Missing> {
        // Marketplace files stand beside a stream and name none.
        let nameless = |s: &Source| s.format == Format::Marketplace;
        let sources = &self.catalog.sources;
        let have = || self.catalog.os_streams().into_iter().map(str::to_owned).collect();
        if let Some(asked) = asked {
            if !sources.iter().any(|s| s.os_stream.as_deref() == Some(asked)) {
                return Err(Missing::Stream { asked: asked.to_owned(), have: have() });
            }
            let sources =
                sources.iter().map(|s| nameless(s) || s.os_stream.as_deref() == Some(asked)).collect();
            return Ok(StreamChoice { name: Some(asked.to_owned()), sources });
        }
        let mut names = sources.iter().filter(|s| s.default && !nameless(s)).map(|s| s.os_stream.as_ref());
        let first = names.next();
        // Streams without a default among them; a marketplace file alone has none to ask for.
        let no_default = first.is_none() && sources.iter().any(|s| !nameless(s));
        let first = first.flatten();
        if no_default || names.any(|name| name != first) {
            return Err(Missing::StreamUnknown { have: have() });
        }
        Ok(StreamChoice {
            name: first.cloned(),
            sources: sources.iter().map(|s| s.default || nameless(s)).collect(),
        })
    }

    /// The one image of a place. A newer format of metadata wins over an older one that stands beside it
    /// (openshift/installer#5255).
    pub(crate) fn image(
        &self,
        stream: &StreamChoice,
        platform: &str,
        architecture: &Architecture,
        select: impl Fn(&Image) -> bool,
        in_region: impl Fn(&Image) -> bool,
    ) -> Result<&'a Image, Missing> {
        let here = |image: &&&Image| stream.holds(image.source) && select(image);
        let own = self.images.get(&(platform, architecture)).map(Vec::as_slice).unwrap_or_default();
        let candidates: Vec<&Image> = own.iter().filter(here).copied().collect();
        if candidates.is_empty() {
            let mut have: Vec<String> = self
                .catalog
                .images
                .iter()
                .filter(|i| &*i.platform == platform && stream.holds(i.source) && select(i))
                .filter_map(|i| i.architecture.as_ref().map(ToString::to_string))
                .collect();
            have.sort_unstable();
            have.dedup();
            return Err(if have.is_empty() { Missing::Platform } else { Missing::Architecture { have } });
        }
        let have = candidates.len();
        let regional: Vec<&Image> = candidates.into_iter().filter(|i| in_region(i)).collect();
        let Some(best) = regional.iter().map(|i| self.preference(i.source)).min() else {
            return Err(Missing::Region { have });
        };
        let mut best = regional.into_iter().filter(|i| self.preference(i.source) == best);
        let first = best.next().ok_or(Missing::Region { have })?;
        match best.find(|other| other.reference != first.reference) {
            Some(other) => Err(Missing::Ambiguous { one: self.said(first), other: self.said(other) }),
            None => Ok(first),
        }
    }

    fn said(&self, image: &Image) -> String {
        let source = self.catalog.source(image.source).map_or("", |s| &s.name);
        format!("{} ({source})", image.reference.text())
    }

    fn preference(&self, id: SourceId) -> u8 {
        match self.catalog.source(id).map(|s| s.format) {
            Some(Format::Meta | Format::InstallerRhcos) => 1,
            _ => 0,
        }
    }

    /// The artifacts of a platform and architecture.
    pub(crate) fn artifacts(
        &self,
        stream: &StreamChoice,
        platform: &str,
        architecture: &Architecture,
    ) -> impl Iterator<Item = &'a Artifact> {
        let all = self.artifacts.get(&(platform, architecture)).map(Vec::as_slice).unwrap_or_default();
        let held: Vec<_> = all.iter().filter(|a| stream.holds(a.source)).copied().collect();
        held.into_iter()
    }

    /// The newest version that the release has for a platform and architecture.
    pub(crate) fn newest(
        &self,
        stream: &StreamChoice,
        platform: &str,
        architecture: &Architecture,
    ) -> Option<&'a OsVersion> {
        let images = self.images.get(&(platform, architecture)).map(Vec::as_slice).unwrap_or_default();
        let images = images
            .iter()
            .filter(|i| stream.holds(i.source))
            // Marketplace versions trail the release and are counted apart.
            .filter(|i| !matches!(i.reference, ImageReference::Marketplace(_)))
            .filter_map(|i| i.version.as_deref());
        let artifacts = self.artifacts(stream, platform, architecture).filter_map(|a| a.version.as_deref());
        OsVersion::newest(artifacts.chain(images))
    }
}
