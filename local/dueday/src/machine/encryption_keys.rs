//! The encryption keys of the local system, in a file of the data folder that only the owner of the file can read.

use std::path::{Path, PathBuf};

use clock::Clock;
use encryption::{EncryptionKeys, generate_key};

use super::secret_file::{read_secret_file, write_secret_file};
use crate::Failure;

/// Returns the path of the file with the encryption keys of the data folder `folder`.
pub fn path_of_encryption_keys(folder: &Path) -> PathBuf {
    folder.join("encryption-keys")
}

/// Reads the encryption keys of the data folder `folder`.
///
/// # Errors
/// If the file does not exist, cannot be read, or contains no valid keys.
pub fn read_encryption_keys(folder: &Path) -> Result<EncryptionKeys, Failure> {
    let path = path_of_encryption_keys(folder);
    let text = read_secret_file(&path)?;
    EncryptionKeys::parse(&text).map_err(|error| Failure::File { path, reason: error.to_string() })
}

/// Reads the encryption keys of the data folder `folder`, which this process has locked. Creates the file with a new key
/// if it does not exist.
///
/// # Errors
/// If the file cannot be created or read, or contains no valid keys.
pub fn read_or_create_encryption_keys(folder: &Path, clock: &dyn Clock) -> Result<EncryptionKeys, Failure> {
    let path = path_of_encryption_keys(folder);
    if !path.exists() {
        write_secret_file(&path, &format!("{}\n", generate_key(clock)))
            .map_err(|source| Failure::Data { path, source })?;
    }
    read_encryption_keys(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use clock::SystemClock;

    #[test]
    fn encryption_keys_are_created_once_and_an_incomplete_file_of_a_killed_process_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path_of_encryption_keys(folder.path()).with_extension("new"), "0123").unwrap();
        let created = read_or_create_encryption_keys(folder.path(), &SystemClock).unwrap();
        let read = read_or_create_encryption_keys(folder.path(), &SystemClock).unwrap();
        assert_eq!(format!("{created:?}"), format!("{read:?}"), "the ids of the keys");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn error_of_missing_or_invalid_encryption_keys_contains_the_file_name_and_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let missing = read_encryption_keys(folder.path()).unwrap_err().to_string();
        assert!(missing.contains("encryption-keys"), "{missing}");
        fs::write(path_of_encryption_keys(folder.path()), "0123abc").unwrap();
        let invalid = read_or_create_encryption_keys(folder.path(), &SystemClock).unwrap_err().to_string();
        assert!(invalid.contains("encryption-keys") && invalid.contains("64 hexadecimal digits"), "{invalid}");
        assert!(!invalid.contains("0123abc"), "{invalid}");
    }

    #[cfg(unix)]
    #[test]
    fn new_encryption_keys_can_be_read_only_by_the_owner_of_the_file() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        read_or_create_encryption_keys(folder.path(), &SystemClock).unwrap();
        assert_eq!(fs::metadata(path_of_encryption_keys(folder.path())).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
