//! coreos-assembler `meta.json` (coreos-assembler `src/v1.json`) and what the installer made of it up to 4.9
//! (openshift/installer `hack/update-rhcos-bootimage.py`): one build, one architecture.

use std::sync::Arc;

use serde_json::Value;

use super::fields::Fields;
use super::{conclude, source, stream, version};
use crate::catalog::{Artifact, Catalog, Image, SourceId, platform};
use crate::document::Format;
use crate::{Architecture, ImageReference, OsVersion};

pub(super) fn add(
    catalog: &mut Catalog,
    name: &Arc<str>,
    format: Format,
    value: &Value,
    architecture: Option<&Architecture>,
) {
    let mut fields = Fields::new(name);
    let mut source = source(name, format);
    source.last_modified = fields
        .text(value, "coreos-assembler.build-timestamp", "")
        .or_else(|| fields.text(value, "ostree-timestamp", ""))
        .map(str::to_owned);
    source.stream = value
        .get("coreos-assembler.oci-imported-labels")
        .and_then(|labels| labels.get("com.coreos.stream"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    let build = fields.text(value, "buildid", "").or_else(|| fields.text(value, "ostree-version", ""));
    let release = version(build, &mut None);
    if release.is_none() {
        fields.problem("buildid", format!("`{}` is not an OS version", build.unwrap_or_default()));
    }
    let architecture = architecture_of(value, name, release.as_deref()).or_else(|| architecture.cloned());
    if architecture.is_none() {
        fields.problem(
            "coreos-assembler.basearch",
            "neither the content nor the file name tells the architecture: give it with --arch",
        );
    }
    let id = catalog.add_source(source);
    let mut reader = Reader { catalog, fields, id, release, architecture };
    reader.artifacts(value);
    reader.images(value);
    let Reader { fields, .. } = reader;
    fields.finish(catalog);
    conclude(catalog, id);
}

/// From the strongest proof to the weakest: the field, the artifact names, the package changes, the file name, the era.
fn architecture_of(value: &Value, name: &str, release: Option<&OsVersion>) -> Option<Architecture> {
    if let Some(named) = value.get("coreos-assembler.basearch").and_then(Value::as_str) {
        return Some(Architecture::from(named));
    }
    let paths = || {
        value
            .get("images")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(_, image)| image.get("path").and_then(Value::as_str))
    };
    if let Some(found) = paths().find_map(Architecture::in_file_name) {
        return Some(found);
    }
    let packages = value.get("pkgdiff").and_then(Value::as_array).into_iter().flatten();
    let in_packages = packages
        .filter_map(|change| change.get(2)?.as_object())
        .flat_map(serde_json::Map::values)
        .find_map(|package| Architecture::known(package.get(2)?.as_str()?));
    if in_packages.is_some() {
        return in_packages;
    }
    let file = name.rsplit('/').next().unwrap_or(name);
    Architecture::in_file_name(file).or_else(|| {
        // Artifact names carry the architecture since coreos-assembler built more than one (October 2019).
        release.filter(|v| v.date() < (2019, 10, 1)).map(|_| Architecture::X86_64)
    })
}

struct Reader<'a, 'n> {
    catalog: &'a mut Catalog,
    fields: Fields<'n>,
    id: SourceId,
    release: Option<Arc<OsVersion>>,
    architecture: Option<Architecture>,
}

impl Reader<'_, '_> {
    fn artifacts(&mut self, value: &Value) {
        let base = self.fields.text(value, "baseURI", "").map(|base| base.trim_end_matches('/').to_owned());
        for (name, file) in self.fields.object(value, "images", "") {
            let Some(artifact) = stream::artifact(&mut self.fields, file, &format!("images.{name}"), self.id)
            else {
                continue;
            };
            let (platform, format, part) = place(name, artifact.file_name());
            let location = match &base {
                Some(base) => format!("{base}/{}", artifact.location),
                None => artifact.location,
            };
            self.catalog.artifacts.push(Artifact {
                platform: platform.into(),
                architecture: self.architecture.clone(),
                format: format.into(),
                part: part.into(),
                version: self.release.clone(),
                location,
                ..artifact
            });
        }
    }

    fn images(&mut self, value: &Value) {
        // A list of {name, hvm} from coreos-assembler, a map {region: {hvm}} from the installer; Alibaba says `id`.
        for (key, platform) in
            [("amis", platform::AWS), ("aws-winli", platform::AWS_WINLI), ("aliyun", platform::ALIYUN)]
        {
            for (region, entry) in entries(value.get(key), "name") {
                let id = self.fields.text(entry, "hvm", key).or_else(|| self.fields.text(entry, "id", key));
                let id = id.map(|id| ImageReference::Id { id: id.to_owned() });
                self.push(platform, region, id);
            }
        }
        // One object before August 2021, a list afterwards.
        for platform in [platform::IBMCLOUD, platform::POWERVS] {
            for (region, entry) in entries(value.get(platform), "region") {
                let url = self.fields.text(entry, "url", platform).map(str::to_owned);
                let reference = url.map(|url| ImageReference::Object {
                    object: self.fields.text(entry, "object", platform).map(str::to_owned),
                    bucket: self.fields.text(entry, "bucket", platform).map(str::to_owned),
                    url,
                });
                self.push(platform, region, reference);
            }
        }
        if let Some(gcp) = value.get("gcp") {
            let name = self.fields.text(gcp, "image", "gcp").or_else(|| self.fields.text(gcp, "name", "gcp"));
            let reference = name.map(|name| ImageReference::Gcp {
                project: self.fields.text(gcp, "project", "gcp").map(str::to_owned),
                name: name.to_owned(),
                family: self.fields.text(gcp, "family", "gcp").map(str::to_owned),
                url: self.fields.text(gcp, "url", "gcp").map(str::to_owned),
            });
            self.push(platform::GCP, None, reference);
        }
        if let Some(azure) = value.get("azure") {
            let url = self.fields.text(azure, "url", "azure");
            self.push(platform::AZURE, None, url.map(|url| ImageReference::Blob { url: url.to_owned() }));
        }
        if let Some(kubevirt) = value.get("kubevirt") {
            let image = self.fields.text(kubevirt, "image", "kubevirt").map(str::to_owned);
            let digest = self.fields.text(kubevirt, "digest", "kubevirt");
            self.push(
                platform::KUBEVIRT,
                None,
                image.map(|image| ImageReference::Container {
                    digest_ref: digest.map(|digest| format!("{}@{digest}", repository(&image))),
                    image,
                }),
            );
        }
    }

    fn push(&mut self, platform: &str, region: Option<&str>, reference: Option<ImageReference>) {
        let Some(reference) = reference else {
            self.fields
                .problem(platform, format!("an entry of {} names no image", region.unwrap_or(platform)));
            return;
        };
        self.catalog.images.push(Image {
            platform: platform.into(),
            architecture: self.architecture.clone(),
            region: region.map(Into::into),
            version: self.release.clone(),
            reference,
            source: self.id,
        });
    }
}

/// A reference without its tag; a colon in front of a slash is a port.
fn repository(image: &str) -> &str {
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => repository,
        _ => image,
    }
}

/// The entries of a list, of a map by region, or of one object, with the region that each names.
fn entries<'v>(value: Option<&'v Value>, region_key: &str) -> Vec<(Option<&'v str>, &'v Value)> {
    match value {
        Some(Value::Array(items)) => {
            items.iter().map(|item| (item.get(region_key).and_then(Value::as_str), item)).collect()
        }
        Some(Value::Object(map)) if map.values().all(Value::is_object) => {
            map.iter().map(|(region, entry)| (Some(region.as_str()), entry)).collect()
        }
        Some(object @ Value::Object(_)) => vec![(object.get(region_key).and_then(Value::as_str), object)],
        _ => Vec::new(),
    }
}

/// Platform, format and part of an entry of `images`, as stream metadata would name them
/// (coreos-assembler `src/cmd-generate-release-meta`).
fn place(name: &str, file: &str) -> (String, String, &'static str) {
    let metal = || platform::METAL.to_owned();
    match name {
        // The set of the old installer has no rootfs and is called `installer-pxe`, as in the streams of 2020.
        "kernel" => (metal(), "installer-pxe".to_owned(), "kernel"),
        "initramfs" => (metal(), "installer-pxe".to_owned(), "initramfs"),
        "iso" => (metal(), "installer.iso".to_owned(), "disk"),
        "live-kernel" => (metal(), "pxe".to_owned(), "kernel"),
        "live-initramfs" => (metal(), "pxe".to_owned(), "initramfs"),
        "live-rootfs" => (metal(), "pxe".to_owned(), "rootfs"),
        "live-iso" => (metal(), "iso".to_owned(), "disk"),
        "metal4k" => (metal(), format!("4k.{}", extension(file)), "disk"),
        _ => (name.to_owned(), extension(file), "disk"),
    }
}

/// `raw.gz`, `qcow2`, `ova`: what follows the platform and the architecture in a file name.
fn extension(file: &str) -> String {
    const FORMATS: [&str; 11] =
        ["raw", "qcow2", "vmdk", "vhd", "vhdx", "tar", "ova", "iso", "ociarchive", "img", "bfb"];
    let words: Vec<&str> = file.split('.').collect();
    let start = words.iter().rposition(|word| FORMATS.contains(word));
    start.and_then(|start| words.get(start..)).map_or_else(|| file.to_owned(), |words| words.join("."))
}
