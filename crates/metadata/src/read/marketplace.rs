//! Azure marketplace images: openshift/installer `data/data/coreos/marketplace`, also inside stream metadata.

use std::sync::Arc;

use serde_json::Value;

use super::fields::Fields;
use super::source;
use crate::catalog::{Catalog, Distribution, Image, Source, SourceId, platform};
use crate::document::Format;
use crate::{Architecture, ImageReference, MarketplaceImage};

pub(super) fn add(catalog: &mut Catalog, name: &Arc<str>, value: &Value) {
    // The installer publishes no other distribution on a marketplace.
    let source = Source { distribution: Distribution::Rhcos, ..source(name, Format::Marketplace) };
    let id = catalog.add_source(source);
    let mut fields = Fields::new(name);
    for (arch, places) in value.as_object().into_iter().flatten() {
        read(catalog, &mut fields, places, Some(&Architecture::from(arch.as_str())), arch, id);
    }
    fields.finish(catalog);
}

/// `{azure: {PLAN: {hyperVGen1|hyperVGen2: {publisher, offer, sku, version}}}}`.
pub(super) fn read(
    catalog: &mut Catalog,
    fields: &mut Fields<'_>,
    places: &Value,
    architecture: Option<&Architecture>,
    path: &str,
    id: SourceId,
) {
    for (plan, generations) in fields.object(places, "azure", path) {
        for (key, generation) in [("hyperVGen1", 1), ("hyperVGen2", 2)] {
            let path = format!("{path}.azure.{plan}.{key}");
            let Some(entry) = generations.get(key).filter(|e| !e.is_null()) else { continue };
            let mut member = |key: &str| {
                let text = fields.text(entry, key, &path).map(str::to_owned);
                if text.is_none() {
                    fields.problem(&path, format!("no {key}"));
                }
                text
            };
            let (publisher, offer, sku, version) =
                (member("publisher"), member("offer"), member("sku"), member("version"));
            let (Some(publisher), Some(offer), Some(sku), Some(version)) = (publisher, offer, sku, version)
            else {
                continue;
            };
            catalog.images.push(Image {
                platform: platform::AZURE.into(),
                architecture: architecture.cloned(),
                region: None,
                version: version.parse().ok().map(Arc::new),
                reference: ImageReference::Marketplace(MarketplaceImage {
                    plan: plan.clone(),
                    generation,
                    publisher,
                    offer,
                    sku,
                    version,
                }),
                source: id,
            });
        }
    }
}
