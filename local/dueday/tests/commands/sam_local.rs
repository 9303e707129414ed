//! Checks that a test runs each documented `sam local invoke` command.

use std::path::{Path, PathBuf};

use testkit::sam_local_commands;

/// Adds the content of each file in `folder` and in its subfolders to `texts`.
fn read_all(folder: &Path, texts: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            read_all(&entry, texts);
        } else {
            texts.push(std::fs::read_to_string(&entry).unwrap());
        }
    }
}

#[test]
fn each_documented_sam_local_command_is_run_by_a_test_of_its_function() {
    let functions = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../functions"));
    let mut tests = Vec::new();
    for function in std::fs::read_dir(functions).unwrap() {
        read_all(&function.unwrap().path().join("tests"), &mut tests);
    }
    let commands = sam_local_commands();
    assert!(commands.len() >= 9, "{commands:?}");
    for command in commands {
        let call = format!("run_sam_local_commands(\"{}\"", command.function);
        assert!(tests.iter().any(|test| test.contains(&call)), "no test runs {command:?}");
    }
}
