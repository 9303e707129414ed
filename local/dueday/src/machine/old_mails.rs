//! Removes old mails from the outbox. They contain names and addresses of customers, also of erased ones.

use std::path::Path;
use std::{fs, io};

use chrono::{DateTime, TimeDelta, Utc};

/// How long a mail stays in the outbox.
pub const OUTBOX_RETENTION: TimeDelta = TimeDelta::days(30);

/// Deletes the mails in the folder `outbox` that are there for longer than [`OUTBOX_RETENTION`] at `now`. Does nothing
/// if the folder does not exist.
///
/// # Errors
/// If the folder cannot be read, or a mail cannot be deleted.
pub fn remove_old_mails(outbox: &Path, now: DateTime<Utc>) -> io::Result<()> {
    let entries = match fs::read_dir(outbox) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let written_at = DateTime::<Utc>::from(metadata.modified()?);
        if metadata.is_file() && written_at + OUTBOX_RETENTION < now {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn only_mails_of_the_last_30_days_stay_in_the_outbox() {
        let folder = tempfile::tempdir().unwrap();
        let now = "2027-03-31T06:00:00Z".parse::<DateTime<Utc>>().unwrap();
        for (name, days) in [("new.eml", 29), ("old.eml", 31), ("old.part", 400)] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified((now - TimeDelta::days(days)).into()).unwrap();
        }
        remove_old_mails(folder.path(), now).unwrap();
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["new.eml"]);
        remove_old_mails(&folder.path().join("missing"), now).unwrap();
    }
}
