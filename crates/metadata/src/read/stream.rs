//! Stream metadata: fedora-coreos-tracker `metadata/stream/rationale.yaml`; stream-metadata-go `stream`, `stream/rhcos`.

use std::sync::Arc;

use serde_json::Value;

use super::fields::Fields;
use super::{conclude, marketplace, source, version};
use crate::catalog::{Artifact, Catalog, Image, Source, SourceId, platform};
use crate::document::Format;
use crate::{Architecture, ImageReference, OsVersion};

pub(super) fn add(catalog: &mut Catalog, name: &Arc<str>, value: &Value) {
    add_as(catalog, source(name, Format::Stream), value);
}

/// Adds a stream under a source that the caller prepared (a ConfigMap knows more about it).
pub(super) fn add_as(catalog: &mut Catalog, mut source: Source, value: &Value) {
    let name = Arc::clone(&source.name);
    let mut fields = Fields::new(&name);
    source.stream = fields.text(value, "stream", "").map(str::to_owned);
    source.last_modified =
        value.get("metadata").and_then(|m| fields.text(m, "last-modified", "metadata")).map(str::to_owned);
    let id = catalog.add_source(source);
    let mut reader = Reader { catalog, fields, id, last: None };
    for (name, arch) in reader.fields.object(value, "architectures", "") {
        let architecture = Architecture::from(name.as_str());
        let path = format!("architectures.{name}");
        reader.artifacts(arch, &architecture, &path);
        reader.images(arch, &architecture, &path);
        reader.extensions(arch, &architecture, &path);
    }
    let Reader { fields, .. } = reader;
    fields.finish(catalog);
    conclude(catalog, id);
}

/// Which member of an image entry names the image, and how it is then kept.
type Build = fn(&mut Fields<'_>, &Value, &str) -> Option<ImageReference>;

struct Reader<'a, 'n> {
    catalog: &'a mut Catalog,
    fields: Fields<'n>,
    id: SourceId,
    last: Option<Arc<OsVersion>>,
}

impl Reader<'_, '_> {
    fn artifacts(&mut self, arch: &Value, architecture: &Architecture, path: &str) {
        let artifacts = self.fields.object(arch, "artifacts", path);
        for (platform, entry) in artifacts {
            let path = format!("{path}.artifacts.{platform}");
            let release = self.release(entry, &path);
            for (format, parts) in self.fields.object(entry, "formats", &path) {
                let Some(parts) = parts.as_object() else {
                    self.fields.problem(&format!("{path}.formats.{format}"), "expected an object");
                    continue;
                };
                for (part, file) in parts {
                    let path = format!("{path}.formats.{format}.{part}");
                    let built = artifact(&mut self.fields, file, &path, self.id);
                    self.catalog.artifacts.extend(built.map(|a| Artifact {
                        platform: platform.as_str().into(),
                        architecture: Some(architecture.clone()),
                        format: format.as_str().into(),
                        part: part.as_str().into(),
                        version: release.clone(),
                        ..a
                    }));
                }
            }
        }
    }

    fn images(&mut self, arch: &Value, architecture: &Architecture, path: &str) {
        let images = self.fields.object(arch, "images", path);
        for (platform, entry) in images {
            let path = format!("{path}.images.{platform}");
            let build: Build = match platform.as_str() {
                platform::GCP => gcp,
                platform::KUBEVIRT => container,
                platform::IBMCLOUD | platform::POWERVS => object,
                _ => id,
            };
            if entry.get("regions").is_some() {
                self.regional(entry, platform, architecture, &path, build);
            } else {
                self.image(entry, platform, architecture, None, &path, build);
            }
        }
    }

    /// `rhel-coreos-extensions`: what the OpenShift installer adds to the format.
    fn extensions(&mut self, arch: &Value, architecture: &Architecture, path: &str) {
        let extensions = self.fields.object(arch, "rhel-coreos-extensions", path);
        let path = format!("{path}.rhel-coreos-extensions");
        if let Some(disk) = extensions.get("azure-disk") {
            self.image(disk, platform::AZURE, architecture, None, &format!("{path}.azure-disk"), blob);
        }
        if let Some(winli) = extensions.get("aws-winli") {
            self.regional(winli, platform::AWS_WINLI, architecture, &format!("{path}.aws-winli"), id);
        }
        if let Some(places) = extensions.get("marketplace") {
            let path = format!("{path}.marketplace");
            marketplace::read(self.catalog, &mut self.fields, places, Some(architecture), &path, self.id);
        }
    }

    fn regional(
        &mut self,
        entry: &Value,
        platform: &str,
        architecture: &Architecture,
        path: &str,
        build: Build,
    ) {
        for (region, image) in self.fields.object(entry, "regions", path) {
            self.image(
                image,
                platform,
                architecture,
                Some(region),
                &format!("{path}.regions.{region}"),
                build,
            );
        }
    }

    fn image(
        &mut self,
        entry: &Value,
        platform: &str,
        architecture: &Architecture,
        region: Option<&str>,
        path: &str,
        build: Build,
    ) {
        // Fedora's files of 2021 give the version with the platform's artifacts alone.
        let release = self.release(entry, path).or_else(|| self.of_artifacts(platform, architecture));
        if let Some(reference) = build(&mut self.fields, entry, path) {
            self.catalog.images.push(Image {
                platform: platform.into(),
                architecture: Some(architecture.clone()),
                region: region.map(Into::into),
                version: release,
                reference,
                source: self.id,
            });
        }
    }

    fn of_artifacts(&self, platform: &str, architecture: &Architecture) -> Option<Arc<OsVersion>> {
        let own = |a: &&Artifact| {
            a.source == self.id && &*a.platform == platform && a.architecture.as_ref() == Some(architecture)
        };
        self.catalog.artifacts.iter().rev().find(own)?.version.clone()
    }

    fn release(&mut self, entry: &Value, path: &str) -> Option<Arc<OsVersion>> {
        let text = self.fields.text(entry, "release", path)?;
        let version = version(Some(text), &mut self.last);
        if version.is_none() {
            self.fields.problem(&format!("{path}.release"), format!("`{text}` is not an OS version"));
        }
        version
    }
}

fn id(fields: &mut Fields<'_>, entry: &Value, path: &str) -> Option<ImageReference> {
    fields.text(entry, "image", path).map(|id| ImageReference::Id { id: id.to_owned() })
}

fn gcp(fields: &mut Fields<'_>, entry: &Value, path: &str) -> Option<ImageReference> {
    let name = fields.text(entry, "name", path)?.to_owned();
    Some(ImageReference::Gcp {
        project: fields.text(entry, "project", path).map(str::to_owned),
        name,
        family: fields.text(entry, "family", path).map(str::to_owned),
        url: None,
    })
}

fn blob(fields: &mut Fields<'_>, entry: &Value, path: &str) -> Option<ImageReference> {
    fields.text(entry, "url", path).map(|url| ImageReference::Blob { url: url.to_owned() })
}

fn object(fields: &mut Fields<'_>, entry: &Value, path: &str) -> Option<ImageReference> {
    let url = fields.text(entry, "url", path)?.to_owned();
    Some(ImageReference::Object {
        object: fields.text(entry, "object", path).map(str::to_owned),
        bucket: fields.text(entry, "bucket", path).map(str::to_owned),
        url,
    })
}

fn container(fields: &mut Fields<'_>, entry: &Value, path: &str) -> Option<ImageReference> {
    let image = fields.text(entry, "image", path)?.to_owned();
    Some(ImageReference::Container {
        image,
        digest_ref: fields.text(entry, "digest-ref", path).map(str::to_owned),
    })
}

/// The file itself; platform, format, part and version are the caller's to fill in.
pub(super) fn artifact(
    fields: &mut Fields<'_>,
    file: &Value,
    path: &str,
    source: SourceId,
) -> Option<Artifact> {
    let location = fields.text(file, "location", path).or_else(|| fields.text(file, "path", path));
    let Some(location) = location else {
        fields.problem(path, "no location");
        return None;
    };
    Some(Artifact {
        platform: "".into(),
        architecture: None,
        format: "".into(),
        part: "disk".into(),
        version: None,
        location: location.to_owned(),
        signature: fields.text(file, "signature", path).map(str::to_owned),
        sha256: fields.text(file, "sha256", path).map(str::to_owned),
        size: fields.size(file, "size", path),
        uncompressed_sha256: fields.text(file, "uncompressed-sha256", path).map(str::to_owned),
        uncompressed_size: fields.size(file, "uncompressed-size", path),
        source,
    })
}
