//! Processes that a test starts and ends.

use std::io::{Read as _, copy, sink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Returns the number of complete lines in `text`.
pub fn count_lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Repeats `attempt` until it returns a value, and returns the value. `what` names the expected change.
///
/// # Panics
/// If there is no value after a minute.
pub async fn wait_for<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let repeat = async {
        loop {
            if let Some(value) = attempt().await {
                return value;
            }
            tokio::task::yield_now().await;
        }
    };
    let value = tokio::time::timeout(Duration::from_secs(60), repeat).await;
    value.unwrap_or_else(|_| panic!("{what}: not within a minute"))
}

/// A process, killed when dropped.
pub struct Process(pub Child);

impl Process {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Waits until `is_enough` accepts what `file` contains after its first `skipped` bytes, or until the process ends.
    /// Returns whether it was accepted. The file may not exist yet. The standard output of the process must be a pipe.
    pub fn wait_for_file(&mut self, file: &Path, skipped: u64, is_enough: impl Fn(&[u8]) -> bool) -> bool {
        let first = format!("+{}", skipped + 1);
        let mut tail = Command::new("tail");
        let mut tail =
            Self::start(tail.args(["-c", &first, "-F"]).arg(file).stdout(Stdio::piped()).stderr(Stdio::null()));
        let (mut appended, mut output) = (tail.0.stdout.take().unwrap(), self.0.stdout.take().unwrap());
        let (sender, changes) = mpsc::channel();
        let at_end = sender.clone();
        thread::spawn(move || {
            let mut buffer = [0; 8_192];
            while let Ok(length @ 1..) = appended.read(&mut buffer) {
                let _ = sender.send(Some(buffer[..length].to_vec()));
            }
        });
        // When the process ends, its standard output ends.
        thread::spawn(move || {
            let _ = copy(&mut output, &mut sink());
            let _ = at_end.send(None);
        });
        let mut content = Vec::new();
        while !is_enough(&content) {
            match changes.recv().unwrap() {
                Some(bytes) => content.extend(bytes),
                None => return false,
            }
        }
        true
    }

    /// Kills the process with SIGKILL. Returns true if the signal ended the process, and false if the process had
    /// exited before.
    pub fn kill(&mut self) -> bool {
        let _ = self.0.kill();
        // A process that was ended by a signal has no exit code.
        self.0.wait().unwrap().code().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
