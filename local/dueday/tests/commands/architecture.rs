//! Checks that `docs/architecture.md` shows the crates and their dependencies, and that
//! no crate uses a forbidden dependency. `UPDATE_EXAMPLES=1` updates the drawing of the crates.

mod borders;
mod crates;
mod log_lines;
mod modules;
mod source;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use borders::BORDERS;
pub use crates::Crates;

use crate::documents::text_files;

/// The line of the document before the generated drawing of the crates.
const DRAWING_BEGIN: &str = "<!-- The crates, drawn by `UPDATE_EXAMPLES=1 cargo test --test commands architecture` -->";
/// The line of the document after the generated drawing of the crates.
const DRAWING_END: &str = "<!-- End of the crates -->";

/// The folders that contain the crates, in the order in which the drawing shows the folders.
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

/// Returns the dependency graph of the workspace's crates, and one Markdown table of crates for each folder.
fn draw_crates(crates: &Crates) -> String {
    let mut text = String::from("```mermaid\ngraph TD\n");
    for folder in CRATE_FOLDERS {
        writeln!(text, "    subgraph {folder}").unwrap();
        for name in crates.of_folder(folder) {
            writeln!(text, "        {name}").unwrap();
        }
        text.push_str("    end\n");
    }
    for name in crates.workspace_crates() {
        for dependency in crates.drawn_dependencies(name) {
            writeln!(text, "    {name} --> {dependency}").unwrap();
        }
    }
    text.push_str("```\n");
    for folder in CRATE_FOLDERS {
        write!(text, "\n| crate of `{folder}` | what it is | may not use |\n|---|---|---|\n").unwrap();
        for name in crates.of_folder(folder) {
            let borders = BORDERS.iter().filter(|border| border.of.contains(&name));
            let borders: Vec<String> = borders.map(|border| border.may_not_use.to_string()).collect();
            writeln!(text, "| `{name}` | {} | {} |", crates.description(name), borders.join("; ")).unwrap();
        }
    }
    text
}

#[test]
fn architecture_document_draws_all_crates_and_their_dependencies() {
    let path = root().join("docs/architecture.md");
    testkit::check_generated_section(&path, (DRAWING_BEGIN, DRAWING_END), &draw_crates(Crates::of_project()));
}

#[test]
fn template_deploys_each_program_of_the_functions() {
    let crates = Crates::of_project();
    let programs = crates.of_folder("functions").into_iter().flat_map(|name| crates.programs(name).clone());
    let template = std::fs::read_to_string(root().join("template.yaml")).unwrap();
    let deployed = template.lines().filter_map(|line| line.trim().strip_prefix("Binary: "));
    assert_eq!(deployed.map(str::to_owned).collect::<BTreeSet<_>>(), programs.collect::<BTreeSet<_>>());
}
