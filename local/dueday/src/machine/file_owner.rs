//! The owners of the files in the data folder. Only the user who runs the command, and root, may own the folder, a file in it
//! or a symbolic link to it: another owner could read the secrets, replace the keys, or make the command overwrite a file
//! of its user.

use std::path::Path;

use crate::Failure;

/// Checks the owner of `path`, and of the file to which it leads if it is a symbolic link. A missing file has no owner.
///
/// # Errors
/// [`Failure::ForeignOwner`] if the file or the link belongs to another user than the one who runs this process and root.
#[cfg(unix)]
pub fn check_file_owner(path: &Path) -> Result<(), Failure> {
    unix::check_file_owner_for_user(path, unix::current_user())
}

/// Does nothing, because this system has no numeric owners.
#[cfg(not(unix))]
pub fn check_file_owner(_: &Path) -> Result<(), Failure> {
    Ok(())
}

#[cfg(unix)]
pub mod unix {
    use std::fs::{self, Metadata};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use crate::Failure;

    /// The id of the user root.
    const ROOT: u32 = 0;

    /// Returns the id of the user who runs this process.
    pub fn current_user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    /// Checks the owner like [`check_file_owner`](super::check_file_owner), as if `user` ran this process.
    pub fn check_file_owner_for_user(path: &Path, user: u32) -> Result<(), Failure> {
        for metadata in [fs::symlink_metadata(path), fs::metadata(path)] {
            match metadata {
                Ok(metadata) => check_owner_in_metadata(path, &metadata, user)?,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(io_failure(path, source)),
            }
        }
        Ok(())
    }

    /// Checks the owner in the `metadata` of the file at `path`, as if `user` ran this process.
    pub fn check_owner_in_metadata(path: &Path, metadata: &Metadata, user: u32) -> Result<(), Failure> {
        if is_allowed_owner(metadata.uid(), user) {
            return Ok(());
        }
        Err(Failure::ForeignOwner { path: path.to_owned(), owner: metadata.uid(), user })
    }

    /// Returns whether a file of the user `owner` may be used by a process of `user`.
    fn is_allowed_owner(owner: u32, user: u32) -> bool {
        owner == user || owner == ROOT
    }

    fn io_failure(path: &Path, source: io::Error) -> Failure {
        Failure::Data { path: path.to_owned(), source }
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::{lchown, symlink};

        use super::*;

        /// Makes `path` belong to another user, and returns the user for whom the check must refuse it. Only root can
        /// change the owner of a file. Another user keeps the file, and the check runs for a user with another id.
        pub fn give_to_another_user(path: &Path) -> u32 {
            let user = current_user();
            if user != ROOT {
                return user + 1;
            }
            lchown(path, Some(4_242), None).unwrap();
            user
        }

        #[test]
        fn only_files_of_the_user_and_of_root_are_allowed() {
            assert!(is_allowed_owner(1_000, 1_000) && is_allowed_owner(0, 1_000) && is_allowed_owner(0, 0));
            assert!(!is_allowed_owner(1_001, 1_000) && !is_allowed_owner(1_000, 0));
        }

        #[test]
        fn file_and_link_of_another_user_are_refused_with_their_path_and_what_is_allowed() {
            let folder = tempfile::tempdir().unwrap();
            let (file, link) = (folder.path().join("file"), folder.path().join("link"));
            fs::write(&file, "").unwrap();
            symlink(&file, &link).unwrap();
            for path in [&file, &link, &folder.path().join("missing")] {
                check_file_owner_for_user(path, current_user()).unwrap();
            }
            let user = give_to_another_user(&link);
            let refused = check_file_owner_for_user(&link, user).unwrap_err().to_string();
            for part in [link.to_str().unwrap(), "belongs to the user with the id", "Only files of the user who runs"] {
                assert!(refused.contains(part), "{part}: {refused}");
            }
            fs::remove_file(&link).unwrap();
            symlink(&file, &link).unwrap();
            let user = give_to_another_user(&file);
            for path in [&file, &link] {
                assert!(
                    matches!(check_file_owner_for_user(path, user), Err(Failure::ForeignOwner { .. })),
                    "{}",
                    path.display()
                );
            }
        }
    }
}
