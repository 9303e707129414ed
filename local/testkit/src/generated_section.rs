//! Sections of documents that tests generate.

use std::path::Path;

/// Compares the section of the document at `path` between the lines `begin` and `end` with the text `generated`. If the
/// environment variable `UPDATE_EXAMPLES` is set, writes the section instead.
///
/// # Panics
/// If the document does not contain both lines, or its section differs from `generated`.
pub fn check_generated_section(path: &Path, (begin, end): (&str, &str), generated: &str) {
    let document = std::fs::read_to_string(path).expect("the document");
    let (before, rest) = document.split_once(begin).expect("the line that begins the section");
    let (_, after) = rest.split_once(end).expect("the line that ends the section");
    let expected = format!("{before}{begin}\n\n{generated}\n{end}{after}");
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(path, expected).expect("the document can be written");
        return;
    }
    assert!(document == expected, "{} is out of date: UPDATE_EXAMPLES=1 updates the section", path.display());
}
