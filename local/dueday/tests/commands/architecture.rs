//! Checks that `docs/architecture.md` lists the crates and their borders and draws their layers, and that no crate uses
//! a forbidden dependency. `UPDATE_EXAMPLES=1` updates the tables of the crates.

mod borders;
mod crates;
mod layers;
mod log_lines;
mod modules;
mod rooms;
mod source;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use borders::BORDERS;
pub use crates::Crates;

use crate::documents::text_files;

/// The line of the document before the generated tables of the crates.
const TABLES_BEGIN: &str =
    "<!-- The crates, written by `UPDATE_EXAMPLES=1 cargo test --test commands architecture` -->";
/// The line of the document after the generated tables of the crates.
const TABLES_END: &str = "<!-- End of the crates -->";

/// The folders that contain the crates, in the order of the tables.
const CRATE_FOLDERS: [&str; 3] = ["functions", "shared", "local"];

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns each source file of the functions and of the shared crates, without their tests: its path and its text.
fn source_files() -> impl Iterator<Item = (String, String)> {
    let is_code = |path: &str| {
        ["functions/", "shared/"].iter().any(|folder| path.starts_with(folder))
            && path.contains("/src/")
            && path.ends_with(".rs")
    };
    text_files().filter(move |(path, _)| is_code(path))
}

/// Returns one Markdown table of crates for each folder.
fn write_crate_tables(crates: &Crates) -> String {
    let write_table = |folder: &str| {
        let mut table = format!("| crate of `{folder}` | what it is | may not use |\n|---|---|---|\n");
        for name in crates.of_folder(folder) {
            let borders = BORDERS.iter().filter(|border| border.of.contains(&name));
            let borders: Vec<String> = borders.map(|border| border.may_not_use.to_string()).collect();
            let (folder, description) = (crates.folder(name), crates.description(name));
            writeln!(table, "| `{folder}` | {description} | {} |", borders.join("; ")).unwrap();
        }
        table
    };
    CRATE_FOLDERS.map(write_table).join("\n")
}

#[test]
fn architecture_document_lists_all_crates_and_their_borders() {
    let path = root().join("docs/architecture.md");
    testkit::check_generated_section(&path, TABLES_BEGIN, TABLES_END, &write_crate_tables(Crates::of_project()));
}

#[test]
fn template_deploys_each_program_of_the_functions() {
    let crates = Crates::of_project();
    let programs = crates.of_folder("functions").into_iter().flat_map(|name| crates.programs(name).clone());
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let deployed = template.lines().filter_map(|line| line.trim().strip_prefix("Binary: "));
    assert_eq!(deployed.map(str::to_owned).collect::<BTreeSet<_>>(), programs.collect::<BTreeSet<_>>());
}
