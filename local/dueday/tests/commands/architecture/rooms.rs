//! Checks the imports between the folders of a crate, and draws them in `docs/architecture.md`. `UPDATE_EXAMPLES=1`
//! updates the drawing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::modules::{Dependencies, Source, reachable_modules};
use super::root;

/// The line of the document before the drawing.
const DRAWING_BEGIN: &str = "<!-- imports -->";
/// The line of the document after the drawing.
const DRAWING_END: &str = "<!-- /imports -->";

/// The crates whose files are all in folders. Their imports name the module that defines an item.
const CRATES_OF_FOLDERS: [&str; 2] = ["billing", "store"];

/// The macros of `billing`, which Rust exports from the root of the crate, and a function that one of them calls there.
const MACROS: [&str; 4] = ["check_id", "checked_text", "identifier", "openapi_schema"];

/// Returns the folders of a crate that depend on each other or on others, each after all folders that it depends on.
fn folders_in_order<'a>(source: &'a Source, dependencies: &Dependencies) -> Vec<&'a str> {
    let has_files = |name: &&str| source.files.keys().any(|module| module.len() > 1 && module[0] == *name);
    let mut folders: Vec<&str> =
        source.files[&Vec::new()].children.keys().map(String::as_str).filter(has_files).collect();
    // A folder depends on more folders than each folder that it depends on, because there are no cycles.
    folders.sort_by_key(|folder| (reachable_modules(dependencies, folder).len(), *folder));
    folders
}

/// Draws the folders of each crate that has several, from the bottom to the top, with the folders that each imports from.
fn draw_imports() -> String {
    let mut drawing = String::from("```\n");
    for (name, source) in Source::of_project() {
        let dependencies = source.dependencies();
        let folders = folders_in_order(source, &dependencies);
        if folders.len() < 2 {
            continue;
        }
        writeln!(drawing, "{name}").unwrap();
        for (at, folder) in folders.iter().enumerate() {
            let below = folders[..at]
                .iter()
                .filter(|to| dependencies.keys().any(|(from, imported)| from == folder && imported == *to));
            let below: Vec<&str> = below.copied().collect();
            writeln!(drawing, "{}", format!("    {folder:<16} {}", below.join(", ")).trim_end()).unwrap();
        }
    }
    drawing + "```"
}

#[test]
fn architecture_document_draws_the_imports_between_folders() {
    let path = root().join("docs/architecture.md");
    testkit::check_generated_section(&path, DRAWING_BEGIN, DRAWING_END, &draw_imports());
}

#[test]
fn imports_inside_a_crate_name_the_module_that_defines_the_item() {
    let mut found = BTreeSet::new();
    for (name, source) in Source::of_project().iter().filter(|(name, _)| CRATES_OF_FOLDERS.contains(name)) {
        let root = &source.files[&Vec::new()];
        for (module, file) in source.files.iter().filter(|(module, _)| !module.is_empty()) {
            for path in file.imports.iter().map(|import| &import.path).chain(&file.paths) {
                let is_of_root = path[0] == "crate" && path.len() > 1 && !root.children.contains_key(&path[1]);
                let leaves_folder = path.get(..2).is_some_and(|start| start == ["super", "super"]);
                if (is_of_root && !MACROS.contains(&path[1].as_str())) || leaves_folder {
                    found.insert(format!("{name}, {}: {}", module.join("::"), path.join("::")));
                }
            }
        }
    }
    assert!(found.is_empty(), "imports without the module that defines the item: {found:#?}");
}
