//! Any bytes as release metadata, and as an index: read, linted, written as an index, and read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metadata::{Catalog, Document, lint, read_index, write_index};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = read_index(text);
    }
    let Ok(document) = Document::parse("rhcos-amd64.json", bytes) else { return };
    let mut catalog = Catalog::new();
    catalog.add(&document, None);
    let _ = lint(&catalog, Some(&catalog));
    let index = write_index(&catalog);
    let again = read_index(&index).expect("an index that was written is read");
    assert_eq!(write_index(&again), index);
    for image in catalog.images.iter().take(8) {
        let _ = catalog.identify(&image.reference.text());
    }
});
