//! Processes that a test starts and ends.

use std::process::{Child, Command};

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
