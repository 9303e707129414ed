//! Data folders with the data of `dueday demo`. The command would take most of the time of a test, so it runs only
//! once, and each test gets a copy of the data folder.

use std::fs::{self, Permissions};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::terminal::{dueday, output};

/// A file or a folder in a data folder. A folder has no content.
struct Entry {
    /// The path inside the data folder.
    inner: PathBuf,
    permissions: Permissions,
    content: Option<Vec<u8>>,
}

/// The files and folders of a data folder after `dueday demo`. A folder comes before its files.
static DEMO_ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, stderr) = output(dueday(folder.path()).arg("demo"));
    assert_eq!(code, 0, "{stderr}");
    let read = |path: PathBuf| Entry {
        inner: path.strip_prefix(folder.path()).unwrap().to_owned(),
        permissions: fs::metadata(&path).unwrap().permissions(),
        content: path.is_file().then(|| fs::read(&path).unwrap()),
    };
    all_files(folder.path()).into_iter().map(read).collect()
});

/// Writes the files of `dueday demo` to the folder `data`.
pub fn write_demo_folder(data: &Path) {
    for Entry { inner, permissions, content } in DEMO_ENTRIES.iter() {
        let path = data.join(inner);
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::create_dir_all(&path).unwrap(),
        }
        fs::set_permissions(&path, permissions.clone()).unwrap();
    }
}

/// Returns all files and folders below `folder`, and `folder` itself.
pub fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(all_files(&path)) } else { found.push(path) }
    }
    found
}
