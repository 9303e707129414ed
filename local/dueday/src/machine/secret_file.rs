//! Files of the data folder that contain a secret. Only the owner can read them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use super::file_owner::check_file_owner;
use crate::Failure;

/// Reads the secret in the file `path` of the data folder.
///
/// # Errors
/// [`Failure::ForeignOwner`] if the data folder, the file or a symbolic link belongs to another user; [`Failure::Data`] if
/// the file cannot be read.
pub fn read_secret_file(path: &Path) -> Result<String, Failure> {
    let io = |source| Failure::Data { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        check_file_owner(folder)?;
    }
    check_file_owner(path)?;
    let mut file = File::open(path).map_err(io)?;
    // The file may have been replaced after the check, so also check the file that was opened.
    #[cfg(unix)]
    super::file_owner::unix::check_owner_in_metadata(
        path,
        &file.metadata().map_err(io)?,
        super::file_owner::unix::current_user(),
    )?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(io)?;
    Ok(text)
}

/// Writes `text` to the new file `path`, which only its owner can read. The text is written to a temporary file, which
/// is then renamed. Otherwise a process that is killed while it writes could leave an incomplete secret.
///
/// # Errors
/// If the file cannot be written.
pub fn write_secret_file(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)
}
