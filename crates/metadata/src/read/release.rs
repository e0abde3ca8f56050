//! Fedora CoreOS `release.json` and the index of releases (stream-metadata-go `release`).

use std::sync::Arc;

use serde_json::Value;

use super::fields::Fields;
use super::{conclude, source, stream, version};
use crate::catalog::{Artifact, Catalog, Image, platform};
use crate::document::Format;
use crate::{Architecture, ImageReference};

/// Like a stream, but `media.PLATFORM.{artifacts, images}` and one version for all.
pub(super) fn add(catalog: &mut Catalog, name: &Arc<str>, value: &Value) {
    let mut fields = Fields::new(name);
    let mut source = source(name, Format::Release);
    source.stream = fields.text(value, "stream", "").map(str::to_owned);
    source.last_modified =
        value.get("metadata").and_then(|m| fields.text(m, "last-modified", "metadata")).map(str::to_owned);
    let text = fields.text(value, "release", "");
    let release = version(text, &mut None);
    if release.is_none() {
        fields.problem("release", format!("`{}` is not an OS version", text.unwrap_or_default()));
    }
    let id = catalog.add_source(source);
    for (arch, entry) in fields.object(value, "architectures", "") {
        let architecture = Some(Architecture::from(arch.as_str()));
        let path = format!("architectures.{arch}");
        for (platform, media) in fields.object(entry, "media", &path) {
            let path = format!("{path}.media.{platform}");
            for (format, parts) in fields.object(media, "artifacts", &path) {
                for (part, file) in parts.as_object().into_iter().flatten() {
                    let built = stream::artifact(&mut fields, file, &format!("{path}.{format}.{part}"), id);
                    catalog.artifacts.extend(built.map(|a| Artifact {
                        platform: platform.as_str().into(),
                        architecture: architecture.clone(),
                        format: format.as_str().into(),
                        part: part.as_str().into(),
                        version: release.clone(),
                        ..a
                    }));
                }
            }
            let images = fields.object(media, "images", &path);
            let mut push = |region: Option<&str>, reference: ImageReference| {
                catalog.images.push(Image {
                    platform: platform.as_str().into(),
                    architecture: architecture.clone(),
                    region: region.map(Into::into),
                    version: release.clone(),
                    reference,
                    source: id,
                });
            };
            if platform == platform::GCP {
                let gcp = media.get("images").unwrap_or(&Value::Null);
                if let Some(name) =
                    fields.text(gcp, "name", &path).or_else(|| fields.text(gcp, "image", &path))
                {
                    let member = |key: &str| gcp.get(key).and_then(Value::as_str).map(str::to_owned);
                    let (project, family) = (member("project"), member("family"));
                    push(None, ImageReference::Gcp { project, name: name.to_owned(), family, url: None });
                }
                continue;
            }
            for (region, image) in images {
                if let Some(id) = fields.text(image, "image", &path) {
                    push(Some(region), ImageReference::Id { id: id.to_owned() });
                }
            }
        }
    }
    fields.finish(catalog);
    conclude(catalog, id);
}

/// The index names, for each release, where its own document lies and the container of its OS.
pub(super) fn add_index(catalog: &mut Catalog, name: &Arc<str>, value: &Value) {
    let mut fields = Fields::new(name);
    let mut source = source(name, Format::ReleaseIndex);
    source.stream = fields.text(value, "stream", "").map(str::to_owned);
    let id = catalog.add_source(source);
    for (n, release) in value.get("releases").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = format!("releases[{n}]");
        let text = fields.text(release, "version", &path);
        let version = version(text, &mut None);
        if version.is_none() {
            fields.problem(
                &format!("{path}.version"),
                format!("`{}` is not an OS version", text.unwrap_or_default()),
            );
        }
        for image in release.get("oci-images").and_then(Value::as_array).into_iter().flatten() {
            let Some(container) = fields.text(image, "image", &path) else { continue };
            catalog.images.push(Image {
                platform: "oci".into(),
                architecture: fields.text(image, "architecture", &path).map(Architecture::from),
                region: None,
                version: version.clone(),
                reference: ImageReference::Container {
                    image: container.to_owned(),
                    digest_ref: fields.text(image, "digest-ref", &path).map(str::to_owned),
                },
                source: id,
            });
        }
    }
    fields.finish(catalog);
    conclude(catalog, id);
}
