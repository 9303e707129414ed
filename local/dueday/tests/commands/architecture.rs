//! `docs/architecture.md` shows the crates as Cargo knows them, names only paths that exist, and its borders hold.
//! `UPDATE_EXAMPLES=1` draws the crates anew.

mod borders;
mod crates;
mod modules;
mod source;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use borders::BORDERS;
use crates::Crates;

/// The drawing stands between these two lines.
const BEGIN: &str = "<!-- The crates, drawn by `UPDATE_EXAMPLES=1 cargo test --test commands architecture` -->";
const END: &str = "<!-- End of the crates -->";

/// The folders of crates, in the order in which they are shown.
const FOLDERS: [&str; 3] = ["functions", "shared", "local"];

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The graph and the table of all crates of the workspace, in Markdown.
fn drawing(crates: &Crates) -> String {
    let mut text = String::from("```mermaid\ngraph TD\n");
    for folder in FOLDERS {
        writeln!(text, "    subgraph {folder}").unwrap();
        for name in crates.of_folder(folder) {
            writeln!(text, "        {name}").unwrap();
        }
        text.push_str("    end\n");
    }
    for name in crates.ours() {
        for dependency in crates.drawn_dependencies(name) {
            writeln!(text, "    {name} --> {dependency}").unwrap();
        }
    }
    text.push_str("```\n");
    for folder in FOLDERS {
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
fn architecture_document_draws_the_crates_as_they_are() {
    let path = root().join("docs/architecture.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the line that begins the drawing");
    let (_, after) = rest.split_once(END).expect("the line that ends the drawing");
    let wanted = format!("{before}{BEGIN}\n\n{}\n{END}{after}", drawing(&Crates::read()));
    if std::env::var_os("UPDATE_EXAMPLES").is_some() {
        std::fs::write(&path, &wanted).unwrap();
        return;
    }
    assert!(
        document == wanted,
        "docs/architecture.md does not show the crates as they are: UPDATE_EXAMPLES=1 draws them"
    );
}

/// Every `path` in backticks that begins with a folder of the repository, and what stands beside it in the same cell.
fn named_paths(document: &str) -> BTreeSet<String> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        let top = text.split('/').next().unwrap_or_default();
        let tops = ["functions", "shared", "local", "docs", "statemachine", "events", ".ci", "template.yaml"];
        tops.contains(&top) && (text.contains('/') || text.contains('.')) && !text.contains('*')
    };
    quoted.filter(is_path).map(str::to_owned).collect()
}

#[test]
fn architecture_document_names_only_paths_that_exist() {
    let document = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let paths = named_paths(&document);
    assert!(paths.len() > 30, "the paths are no longer found: {paths:?}");
    let absent: Vec<&String> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(absent.is_empty(), "docs/architecture.md names what is not there: {absent:?}");
    // A file without its folder could be any: each is named from the root.
    let quoted = document.split('`').skip(1).step_by(2);
    let bare: Vec<&str> = quoted.filter(|text| text.ends_with(".rs") && !paths.contains(*text)).collect();
    assert!(bare.is_empty(), "docs/architecture.md names files without their folder: {bare:?}");
}
