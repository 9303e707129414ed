//! The owners and the file modes of the data folder: only the user who runs the command can own and read the folder and
//! the files in it.

use std::path::Path;

use super::file_owner::check_file_owner;
use crate::Failure;

/// The names of the files and folders that dueday writes into the data folder. A name that ends with `.` stands for all
/// names that begin with this text.
const NAMES_OF_WRITTEN_FILES: [&str; 12] = [
    "dynamodb.",
    "encryption-keys",
    "encryption-keys.",
    "events",
    "gateway-ledger.",
    "mails-delayed.",
    "not-mailed.",
    "not-ordered.",
    "outbox",
    "running.json",
    "token-key",
    "token-key.",
];

/// Opens the data folder `folder`, and creates it if it does not exist. From now on, only the owner can read the files
/// and folders that this process creates. Removes the rights of other users from existing files of dueday in the folder.
///
/// # Errors
/// If the folder cannot be created, or if the folder, a file of dueday in it or a symbolic link to one of them belongs to
/// another user. A file mode that cannot be changed is not an error, because some file systems have no modes. `dueday
/// doctor` reports such files.
pub fn open_private_folder(folder: &Path) -> Result<(), Failure> {
    check_file_owner(folder)?;
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let io = |source| Failure::Data { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(io)?;
    check_folder_owners(folder)?;
    #[cfg(unix)]
    let _ = modes::restrict_folder(folder);
    Ok(())
}

/// Checks that the data folder `folder` and the files of dueday in it belong to the user who runs this process, or to root.
///
/// # Errors
/// [`Failure::ForeignOwner`] if a file or a symbolic link belongs to another user; [`Failure::Data`] if the folder cannot be
/// read.
#[cfg(unix)]
pub fn check_folder_owners(folder: &Path) -> Result<(), Failure> {
    modes::check_folder_owners_for_user(folder, super::file_owner::unix::current_user())
}

/// Does nothing, because this system has no numeric owners.
#[cfg(not(unix))]
pub fn check_folder_owners(_: &Path) -> Result<(), Failure> {
    Ok(())
}

/// Returns whether dueday writes a file or folder with this name into the data folder.
fn is_written_by_dueday(name: &str) -> bool {
    NAMES_OF_WRITTEN_FILES
        .iter()
        .any(|written| name == *written || (written.ends_with('.') && name.starts_with(written)))
}

#[cfg(unix)]
pub use modes::list_files_accessible_to_others;

#[cfg(unix)]
mod modes {
    use std::fs::{self, DirEntry, Permissions};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use super::is_written_by_dueday;
    use crate::Failure;
    use crate::machine::file_owner::unix::check_file_owner_for_user;

    /// The rights of all users except the owner.
    const PERMISSIONS_OF_OTHER_USERS: u32 = 0o077;

    /// Returns the data folder and the files in it to which other users have a right. Files that dueday does not write
    /// are left out.
    ///
    /// # Errors
    /// If the folder or a file in it cannot be read.
    pub fn list_files_accessible_to_others(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut open: Vec<PathBuf> =
            Some(folder.to_owned()).filter(|_| is_accessible_to_others(folder)).into_iter().collect();
        for entry in read_entries(folder)? {
            if is_written_by_dueday(&entry.file_name().to_string_lossy()) {
                visit_entry(&entry, &mut |path, _| {
                    open.extend(Some(path.to_owned()).filter(|path| is_accessible_to_others(path)));
                    Ok(())
                })?;
            }
        }
        Ok(open)
    }

    /// Checks the owners like [`check_folder_owners`](super::check_folder_owners), as if `user` ran this process.
    pub(super) fn check_folder_owners_for_user(folder: &Path, user: u32) -> Result<(), Failure> {
        check_file_owner_for_user(folder, user)?;
        let io = |source| Failure::Data { path: folder.to_owned(), source };
        let entries = read_entries(folder).map_err(io)?.into_iter();
        let mut paths: Vec<PathBuf> = entries
            .filter(|entry| is_written_by_dueday(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        while let Some(path) = paths.pop() {
            check_file_owner_for_user(&path, user)?;
            // Another user can create no files in a folder that other users cannot enter.
            if path.is_dir() && !path.is_symlink() && is_accessible_to_others(&path) {
                paths.extend(read_entries(&path).map_err(io)?.iter().map(DirEntry::path));
            }
        }
        Ok(())
    }

    /// Removes the rights of other users from the files of dueday in the data folder `folder`. If the folder contains
    /// no other files, also removes the rights from the folder itself. A folder with other files may be shared on
    /// purpose.
    pub(super) fn restrict_folder(folder: &Path) -> io::Result<()> {
        let (mut is_shared, mut first_error) = (false, None);
        for entry in read_entries(folder)? {
            if is_written_by_dueday(&entry.file_name().to_string_lossy()) {
                first_error = first_error.or(visit_entry(&entry, &mut restrict_permissions).err());
            } else {
                is_shared = true;
            }
        }
        if !is_shared {
            restrict_permissions(folder, true)?;
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Calls `action` for the files in `entry`, and then for `entry` itself. If other users cannot enter a folder,
    /// skips the files in this folder: there may be many files, and other users cannot read them. Skips symbolic links,
    /// because their targets may be files of other programs.
    fn visit_entry(entry: &DirEntry, action: &mut dyn FnMut(&Path, bool) -> io::Result<()>) -> io::Result<()> {
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() && is_accessible_to_others(&path) {
            for child in read_entries(&path)? {
                visit_entry(&child, action)?;
            }
        }
        if kind.is_symlink() { Ok(()) } else { action(&path, kind.is_dir()) }
    }

    fn read_entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
        fs::read_dir(folder)?.collect()
    }

    /// Returns whether other users have any right on `path`; false if the file does not exist any more.
    fn is_accessible_to_others(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & PERMISSIONS_OF_OTHER_USERS != 0)
    }

    /// Removes the rights of other users from `path`. A missing file is not an error, because a running server may have
    /// deleted it.
    fn restrict_permissions(path: &Path, is_folder: bool) -> io::Result<()> {
        if !is_accessible_to_others(path) {
            return Ok(());
        }
        match fs::set_permissions(path, Permissions::from_mode(if is_folder { 0o700 } else { 0o600 })) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// Creates a folder whose files other users can read, as an earlier version of dueday has written it.
    fn readable_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in ["events", "outbox", "shared"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in
            ["dynamodb.sqlite", "dynamodb.sqlite-wal", "running.json", "events/2027-01-31.jsonl", "outbox/1.eml"]
        {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for name in ["", "events", "outbox", "shared"] {
            set_permission_bits(&folder.path().join(name), 0o755);
        }
        for name in
            ["dynamodb.sqlite", "dynamodb.sqlite-wal", "running.json", "events/2027-01-31.jsonl", "outbox/1.eml"]
        {
            set_permission_bits(&folder.path().join(name), 0o644);
        }
        folder
    }

    fn set_permission_bits(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn permission_bits(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn other_users_cannot_read_existing_and_new_files_of_a_private_folder() {
        let folder = readable_folder();
        let path = |name: &str| folder.path().join(name);
        fs::remove_dir(path("shared")).unwrap();
        assert_eq!(
            list_files_accessible_to_others(folder.path()).unwrap().len(),
            8,
            "the folder, two folders and five files"
        );
        open_private_folder(folder.path()).unwrap();
        assert_eq!(list_files_accessible_to_others(folder.path()).unwrap(), Vec::<std::path::PathBuf>::new());
        for name in
            ["dynamodb.sqlite", "dynamodb.sqlite-wal", "running.json", "events/2027-01-31.jsonl", "outbox/1.eml"]
        {
            assert_eq!(permission_bits(&path(name)), 0o600, "{name}");
        }
        for name in ["", "events", "outbox"] {
            assert_eq!(permission_bits(&path(name)), 0o700, "{name}");
        }
        fs::write(path("not-mailed.jsonl"), "").unwrap();
        fs::create_dir(path("new")).unwrap();
        assert_eq!((permission_bits(&path("not-mailed.jsonl")), permission_bits(&path("new"))), (0o600, 0o700));
    }

    #[test]
    fn folder_with_a_file_or_link_of_another_user_is_refused_and_files_of_other_programs_are_ignored() {
        use std::os::unix::fs::lchown;
        for name in ["", "events", "outbox/1.eml", "running.json", "encryption-keys", "dynamodb.sqlite-wal"] {
            let folder = readable_folder();
            let path = folder.path().join(name);
            if name == "encryption-keys" {
                symlink(folder.path().join("shared"), &path).unwrap();
            }
            let own = super::super::file_owner::unix::current_user();
            modes::check_folder_owners_for_user(folder.path(), own).unwrap();
            // Only root can give a file to another user. Another user runs the check for a user with another id.
            let user = if own == 0 { own } else { own + 1 };
            if own == 0 {
                lchown(&path, Some(4_242), None).unwrap();
            }
            let refused = modes::check_folder_owners_for_user(folder.path(), user).unwrap_err();
            let Failure::ForeignOwner { path: refused, .. } = refused else { panic!("{refused:?}") };
            assert!(own != 0 || refused == path || name.is_empty(), "{name}: {}", refused.display());
        }
        let folder = readable_folder();
        if super::super::file_owner::unix::current_user() == 0 {
            lchown(folder.path().join("shared"), Some(4_242), None).unwrap();
        }
        open_private_folder(folder.path()).unwrap();
    }

    #[test]
    fn files_of_other_programs_and_their_folder_keep_their_modes() {
        let folder = readable_folder();
        let path = |name: &str| folder.path().join(name);
        let target = folder.path().join("shared/target");
        fs::write(&target, "").unwrap();
        set_permission_bits(&target, 0o644);
        symlink(&target, path("not-ordered.jsonl")).unwrap();
        open_private_folder(folder.path()).unwrap();
        assert_eq!(
            (permission_bits(folder.path()), permission_bits(&path("shared")), permission_bits(&target)),
            (0o755, 0o755, 0o644)
        );
        assert_eq!((permission_bits(&path("dynamodb.sqlite")), permission_bits(&path("outbox"))), (0o600, 0o700));
        assert_eq!(list_files_accessible_to_others(folder.path()).unwrap(), [folder.path().to_owned()]);
    }
}
