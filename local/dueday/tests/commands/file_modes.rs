//! Tests of the owners and the file modes in the data folder: only the owner of the folder can read the files that the
//! commands write, and the commands use no files of another user.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

use crate::demo_folder::{all_files, write_demo_folder};
use crate::gateway::Gateway;
use crate::terminal::{dueday, output};

/// Returns the files and folders below `folder` that other users may read or write.
fn files_accessible_to_others(folder: &Path) -> Vec<PathBuf> {
    let is_accessible_to_others = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o077 != 0;
    all_files(folder).into_iter().filter(is_accessible_to_others).collect()
}

#[test]
fn commands_write_files_that_only_the_owner_can_read() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    // The copied files have the modes of the files that `dueday demo` has written.
    write_demo_folder(&data);
    let names: Vec<String> =
        all_files(&data).iter().map(|path| path.strip_prefix(&data).unwrap().display().to_string()).collect();
    for part in ["dynamodb.sqlite", "encryption-keys", "gateway-ledger.jsonl", "events/", "outbox/", ".eml"] {
        assert!(names.iter().any(|name| name.contains(part)), "{part}: {names:?}");
    }
    assert_eq!(files_accessible_to_others(&data), Vec::<PathBuf>::new());

    for path in all_files(&data) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }
    let (code, _, stderr) = output(dueday(&data).arg("subscriptions"));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(files_accessible_to_others(&data), Vec::<PathBuf>::new(), "an existing folder is repaired");
}

#[test]
fn gateway_in_its_own_process_creates_a_private_folder() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let _gateway = Gateway::start(&data);
    assert!(data.join("gateway-ledger.jsonl").exists());
    assert_eq!(files_accessible_to_others(&data), Vec::<PathBuf>::new());
}

#[test]
fn commands_use_no_folder_and_no_file_of_another_user() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    write_demo_folder(&data);
    let names = ["encryption-keys", "dynamodb.sqlite", "gateway-ledger.jsonl", "outbox"];
    for path in [vec![data.clone()], names.map(|name| data.join(name)).to_vec()].concat() {
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&path).unwrap());
        let given_away = lchown(&path, Some(4_242), None).is_ok();
        for command in ["subscriptions", "status", "gateway"] {
            // `dueday gateway` would run until it is stopped.
            if command == "gateway" && !given_away {
                continue;
            }
            let (code, stdout, stderr) = output(dueday(&data).arg(command));
            // Only root can give a file to another user. For other users, the unit tests check the rule.
            if given_away {
                let expected = format!("{} belongs to the user with the id 4242. Only files of", path.display());
                assert!(code == 2 && stderr.contains(&expected), "{command}: {code} {stdout}{stderr}");
            } else {
                assert_ne!(code, 2, "{command}: {stderr}");
            }
        }
        lchown(&path, Some(owner), None).unwrap();
    }
}
