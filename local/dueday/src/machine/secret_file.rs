//! Files of the data folder that contain a secret. Only the owner can read them.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Writes `text` to the new file `path`, which only its owner can read. The text is written to a temporary file, which
/// is then renamed. Otherwise a process that is killed while it writes could leave an incomplete secret.
///
/// # Errors
/// If the file cannot be written.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
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
