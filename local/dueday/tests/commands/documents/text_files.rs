//! The text files of the project.

use std::path::{Path, PathBuf};

use crate::architecture::root;

/// Folders with generated or downloaded files.
const SKIPPED_FOLDERS: [&str; 7] =
    [".git", "target", ".dueday", ".aws-sam", "node_modules", "snapshots", "__pycache__"];

/// Returns each source file, document and script of the project: its path from the root, and its text.
pub fn text_files() -> impl Iterator<Item = (String, String)> {
    let mut paths = Vec::new();
    collect_text_files(&root(), &mut paths);
    paths.into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(&path).ok()?;
        let path = path.strip_prefix(root()).ok()?.display().to_string();
        Some((path, text))
    })
}

/// Appends the paths of the text files in `folder` and its subfolders to `paths`.
fn collect_text_files(folder: &Path, paths: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                collect_text_files(&path, paths);
            }
        } else if is_text(&path) {
            paths.push(path);
        }
    }
}

/// Returns whether `path` is a source file, a document or a script.
fn is_text(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    ["rs", "md", "yaml", "toml", "mjs", "html"].contains(&extension.as_ref())
        || path.parent().is_some_and(|folder| folder.file_name().is_some_and(|name| name == ".ci"))
}
