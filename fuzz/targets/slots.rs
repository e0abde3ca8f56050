//! Any text as manifests: slots are found, and every site lies inside the text.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use machines::edit::Site;
use machines::{Inventory, tree};

fuzz_target!(|text: &str| {
    let file: Arc<str> = "fuzz.yaml".into();
    let mut inventory = Inventory::new();
    tree::documents(text, |document| {
        if let Ok(document) = document {
            let _ = document.root.to_json();
            inventory.add(&file, &document);
        }
    });
    let _ = Inventory::looks_like_machines(text);
    for slot in inventory.finish() {
        for field in &slot.fields {
            match &field.site {
                Some(Site::Replace { range, .. }) => assert!(text.get(range.clone()).is_some()),
                Some(Site::Insert { at, .. }) => assert!(text.get(*at..).is_some()),
                None => {}
            }
        }
    }
});
