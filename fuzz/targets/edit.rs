//! Any text as manifests: each field of each slot is given a new value, and is then read back with exactly that value,
//! while all else reads as before.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use machines::edit::{Site, apply};
use machines::{Inventory, Slot, tree};

const VALUES: [&str; 4] = ["ami-0123456789abcdef0", "it's \"4.20\": #1", "", "projects/p/global/images/i"];

fn slots(text: &str) -> Option<(Vec<Slot>, usize)> {
    let file: Arc<str> = "fuzz.yaml".into();
    let mut inventory = Inventory::new();
    let mut documents = 0;
    let mut whole = true;
    tree::documents(text, |document| match document {
        Ok(document) => {
            documents += 1;
            inventory.add(&file, &document);
        }
        Err(_) => whole = false,
    });
    whole.then(|| (inventory.finish(), documents))
}

fuzz_target!(|text: &str| {
    let Some((before, documents)) = slots(text) else { return };
    for (n, slot) in before.iter().enumerate().take(4) {
        for (f, field) in slot.fields.iter().enumerate() {
            // A shared anchor is the planner's to refuse.
            let site = match &field.site {
                Some(site @ Site::Replace { uses: 1, .. }) => site,
                Some(site @ Site::Insert { .. }) => site,
                _ => continue,
            };
            for value in VALUES {
                let edited = apply(text, &[site.write(value)]).expect("a site is in the text");
                let (after, same) = slots(&edited).expect("an edited text still parses");
                assert_eq!(same, documents);
                assert_eq!(after.len(), before.len());
                let field = &after[n].fields[f];
                assert_eq!(field.value.as_deref().unwrap_or_default(), value);
            }
        }
    }
});
