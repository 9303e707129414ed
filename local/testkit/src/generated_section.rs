//! Files and sections of documents that tests generate.

use std::path::Path;

/// Compares the section of the document at `path` between the lines `begin` and `end` with the text `generated`. If the
/// environment variable `UPDATE_EXAMPLES` is set, writes the section instead.
///
/// # Panics
/// If the document does not contain both lines, or its section differs from `generated`.
pub fn check_generated_section(path: &Path, begin: &str, end: &str, generated: &str) {
    let document = std::fs::read_to_string(path).expect("the document");
    let (before, rest) = document.split_once(begin).expect("the line that begins the section");
    let (_, after) = rest.split_once(end).expect("the line that ends the section");
    check_generated_file(path, &format!("{before}{begin}\n\n{generated}\n{end}{after}"));
}

/// Compares the file at `path` with the text `generated`. If the environment variable `UPDATE_EXAMPLES` is set, writes
/// the file instead.
///
/// # Panics
/// If the file differs from `generated`.
pub fn check_generated_file(path: &Path, generated: &str) {
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(path, generated).expect("the file can be written");
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == generated, "{} is out of date: UPDATE_EXAMPLES=1 updates it", path.display());
}
