//! Tests of imports whose disk is full: the import ends, names the cause and what was imported, and a later import
//! continues.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use crate::file::{csv_with_rows, import, import_counts, stored_subscriptions, write_file};
use crate::terminal::{dueday, output};

/// The number of rows in the imported file.
const ROWS: u32 = 1_500;

/// Returns the command `dueday` for the data folder `data`. No file that the command writes can become larger than
/// `blocks` blocks of 512 bytes: a write beyond this size fails, as on a full disk.
fn dueday_with_file_limit(data: &Path, blocks: u32) -> Command {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_dueday")]).env_clear().env("DUEDAY_DATA", data);
    command
}

#[test]
fn import_on_a_full_disk_ends_with_its_cause_and_a_later_import_continues() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (data, path) = (folder.join("data"), write_file(folder, "s.csv", csv_with_rows(ROWS)));
    let (code, stdout, stderr) = output(dueday_with_file_limit(&data, 3_000).arg("import").arg(&path));
    assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
    for words in [
        "TransactWriteItems failed: disk I/O error. Free space on the disk of the data folder, and run the command again. ",
        "The import ended after ",
        " created, 0 already existed; run it again to continue, no row is imported twice",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    let (code, imported) = import(folder, &path, &[]);
    let [created, already_there, differs, rejected] = import_counts(&imported);
    assert_eq!((code, created + already_there, differs + rejected), (0, u64::from(ROWS), 0));
    assert!(created > 0 && already_there > 0, "the disk was full during the import: {imported}");
    assert_eq!(stored_subscriptions(folder).len(), 1_500);
}

#[test]
fn import_ends_if_the_file_of_rejects_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let path = write_file(folder, "s.csv", csv_with_rows(3).replace("12.99", "free"));
    let (code, _, stderr) =
        output(dueday(&folder.join("data")).arg("import").arg(&path).args(["--rejects", "/dev/full"]));
    assert_eq!(code, 2, "{stderr}");
    let words = "/dev/full: No space left on device. Free space on the disk of this file, and run the command again";
    assert!(stderr.contains(words), "{stderr}");
}

#[test]
fn run_on_a_full_disk_names_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (data, path) = (folder.join("data"), write_file(folder, "s.csv", csv_with_rows(3)));
    assert_eq!(import(folder, &path, &[]).0, 0);
    let (code, stdout, stderr) = output(dueday_with_file_limit(&data, 8).args(["run", "payments"]));
    assert!(code != 0 && stderr.contains("Free space on the disk of the data folder"), "{code} {stdout} {stderr}");
}
