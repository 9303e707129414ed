//! Events that could not be worked on, in a file of their own, one a line, until they can.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Events set aside.
#[derive(Clone, Debug)]
pub struct SetAside(PathBuf);

impl SetAside {
    /// Those in the file at `path`, which need not be there.
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where they are.
    pub fn path(&self) -> &PathBuf {
        &self.0
    }

    /// Sets `event` aside.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn put(&self, event: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0)?;
        file.write_all(format!("{event}\n").as_bytes())?;
        file.sync_data()
    }

    /// What is set aside, to be worked on again. It stays until [`SetAside::done`].
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn again(&self) -> io::Result<Vec<String>> {
        let again = self.in_work();
        // A kill may have left it: what was done of it is found, and not done twice.
        if !again.exists() && self.0.exists() {
            fs::rename(&self.0, &again)?;
        }
        match fs::read_to_string(&again) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            text => Ok(text?.lines().map(str::to_owned).collect()),
        }
    }

    /// Of what [`SetAside::again`] has answered, all was done, or put aside anew.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn done(&self) -> io::Result<()> {
        match fs::remove_file(self.in_work()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn in_work(&self) -> PathBuf {
        self.0.with_extension("again")
    }
}
