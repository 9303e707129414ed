//! Checks that the crates, functions, tests, files and commands that a document names exist, and that no text of the
//! project contains words that readers have misunderstood.

mod named_commands;
mod plain_words;
mod subscription_life;
mod text_files;

use std::collections::BTreeSet;

use super::architecture::{Crates, root};
pub use text_files::text_files;

/// Returns the text of the file `name` in the folder `docs`.
fn read_document(name: &str) -> String {
    std::fs::read_to_string(root().join("docs").join(name)).unwrap()
}

/// Returns the folders of crates in the tree of README.md, such as `shared/billing`. A line of the tree can name several
/// folders, separated by commas.
fn folders_in_tree(readme: &str) -> BTreeSet<String> {
    let tree = readme.split("\n## The code\n").nth(1).unwrap().split("```").nth(1).unwrap();
    let (mut parent, mut folders) = ("", BTreeSet::new());
    for line in tree.lines() {
        let names = line.trim_start().split("  ").next().unwrap_or_default();
        if line.starts_with(' ') {
            folders.extend(names.split(", ").map(|name| format!("{parent}/{name}")));
        } else {
            parent = names.trim_end_matches('/');
        }
    }
    folders
}

#[test]
fn tree_of_the_readme_contains_each_crate() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let crates = Crates::of_project();
    let expected: BTreeSet<String> = crates.workspace_crates().map(|name| crates.folder(name)).collect();
    assert_eq!(folders_in_tree(&readme), expected, "left: the tree; right: the crates");
}

#[test]
fn architecture_document_names_only_functions_that_exist() {
    let document = read_document("architecture.md");
    let named: BTreeSet<&str> = code_spans(&document).filter_map(|text| text.strip_suffix("()")).collect();
    assert!(named.len() > 15, "the functions are no longer found: {named:?}");
    let sources: String = text_files().filter(|(path, _)| path.contains("/src/")).map(|(_, text)| text).collect();
    let is_missing = |name: &&&str| !["(", "<"].iter().any(|next| sources.contains(&format!("fn {name}{next}")));
    let missing: Vec<&&str> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "docs/architecture.md names functions that do not exist: {missing:?}");
}

#[test]
fn documents_name_only_tests_that_exist() {
    let document = ["guarantees.md", "operations.md", "threat-model.md"].map(read_document).concat();
    // A test name is a sentence: at least four words.
    let is_test_name = |text: &&str| {
        text.matches('_').count() > 2 && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    let named: BTreeSet<&str> = document.split('`').skip(1).step_by(2).filter(is_test_name).collect();
    assert!(named.len() > 40, "the test names are no longer found: {named:?}");
    let sources: String = text_files().filter(|(path, _)| path.ends_with(".rs")).map(|(_, text)| text).collect();
    let missing: Vec<&&str> = named.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "the documents name tests that do not exist: {missing:?}");
}

#[test]
fn every_attack_of_the_threat_model_has_a_test_or_a_check() {
    let document = read_document("threat-model.md");
    let table = document.split("## What stops each attack").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 30, "the rows are no longer found: {rows:?}");
    for row in rows {
        let checks = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(row.matches(" | ").count() == 2 && checks.starts_with('`'), "{row}");
    }
}

#[test]
fn simulations_run_the_long_form_of_each_test_that_has_one() {
    let script = std::fs::read_to_string(root().join(".ci/simulations")).unwrap();
    let lines = script.lines().filter(|line| !line.starts_with('#') && !line.starts_with("printf"));
    let script = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    let (before, long) = script.split_once("export DUEDAY_LONG_TESTS=1 ").unwrap();
    assert!(!before.contains("cargo test"));
    // Each part contains the programs and the modules of one `cargo test` command.
    let commands: Vec<&str> = long.split("cargo test").collect();
    let call = ["short_or_long", "("].concat();
    let files = text_files().filter(|(path, text)| path.contains("/tests/") && text.contains(&call));
    let paths: Vec<String> = files.map(|(path, _)| path).collect();
    assert!(paths.len() > 5, "{paths:?}");
    for path in paths {
        let (_, in_tests) = path.split_once("/tests/").unwrap();
        let mut modules = in_tests.trim_end_matches(".rs").split('/');
        let program = modules.next().unwrap();
        let program = format!("--test {program} ");
        let is_run = |module: &str| {
            commands.iter().any(|command| command.contains(&program) && command.contains(&format!(" {module}::")))
        };
        assert!(modules.any(is_run), "{path} is not in .ci/simulations");
    }
}

/// Returns every path in backticks whose first part is a top-level folder or file of the repository.
fn paths_in_code_spans(document: &str) -> BTreeSet<String> {
    let is_path = |text: &&str| {
        let top = text.split('/').next().unwrap_or_default();
        let tops = ["functions", "shared", "local", "docs", "statemachine", "events", ".ci", "template.yaml"];
        tops.contains(&top) && (text.contains('/') || text.contains('.')) && !text.contains(['*', ' ', '='])
    };
    code_spans(document).filter(is_path).map(str::to_owned).collect()
}

/// Returns every text in backticks.
fn code_spans(document: &str) -> impl Iterator<Item = &str> {
    document.split('`').skip(1).step_by(2)
}

/// Returns the target of every link to a file, without the anchor.
fn linked_files(document: &str) -> impl Iterator<Item = &str> {
    let targets = document.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.starts_with("http"))
}

#[test]
fn documents_name_only_files_that_exist() {
    let mut checked = 0;
    let mut missing = Vec::new();
    for (path, document) in text_files().filter(|(path, _)| path.ends_with(".md")) {
        let folder = root().join(&path).parent().unwrap().to_owned();
        let links = linked_files(&document).map(|link| (link.to_owned(), folder.join(link)));
        let paths = paths_in_code_spans(&document).into_iter().map(|path| (path.clone(), root().join(path)));
        for (name, file) in links.chain(paths) {
            checked += 1;
            if !file.exists() {
                missing.push(format!("{path}: {name}"));
            }
        }
    }
    assert!(checked > 200, "the test finds too few paths in the documents: {checked}");
    assert!(missing.is_empty(), "the documents name files that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn a_file_without_its_folder_is_named_only_where_the_folder_is_stated() {
    let is_bare = |name: &&str| name.ends_with(".rs") && !name.contains('/');
    // A name without a folder is ambiguous, so every path in this document begins at the root of the repository.
    let architecture = read_document("architecture.md");
    let bare: Vec<&str> = code_spans(&architecture).filter(is_bare).collect();
    assert!(bare.is_empty(), "docs/architecture.md names files without their folder: {bare:?}");
    // The first paragraph of this document states the folder of the tests.
    let guarantees = read_document("guarantees.md");
    let tests = root().join("local/testkit/tests/story");
    let missing: Vec<&str> =
        code_spans(&guarantees).filter(is_bare).filter(|name| !tests.join(name).exists()).collect();
    assert!(missing.is_empty(), "docs/guarantees.md names tests that do not exist: {missing:?}");
}
