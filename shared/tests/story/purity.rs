//! What lints cannot see: the domain is not async, and knows no other module of ours.

use std::fs;
use std::path::Path;

#[test]
fn the_domain_reaches_for_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/billing");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for word in ["async ", ".await", "tokio", "aws_", "crate::", "std::env", "std::fs", "f32", "f64", "Utc::now"] {
            assert!(!text.contains(word), "{}: {word:?} does not belong into the domain", path.display());
        }
        files += 1;
    }
    assert!(files > 10, "the domain has moved");
}
