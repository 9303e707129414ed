//! Processes that a test starts, and ends by the id they were started with.

use std::process::{Child, Command};

/// A process, killed when dropped.
pub struct Process(pub Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// `kill -9`. Answers whether that is what ended it.
    pub fn kill(&mut self) -> bool {
        let _ = self.0.kill();
        // What a signal has ended has no exit code.
        self.0.wait().unwrap().code().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
