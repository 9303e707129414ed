//! Exit codes: the result of a command for the shell.

use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded, and nothing needs attention.
    Done = 0,
    /// The command succeeded, but the operator must look at the output: rows failed or were rejected, items cannot be
    /// read, the run records do not prove that a day is complete, a payment has no explanation, or an invariant is
    /// broken.
    Attention = 1,
    /// The command failed: invalid arguments, a table or folder that cannot be used, or a refused request.
    Failed = 2,
    /// The user interrupted the command with Ctrl-C. Shells use the same number (128 + SIGINT).
    Interrupted = 130,
}

impl Exit {
    /// Returns [`Exit::Done`] if `is_clean`, otherwise [`Exit::Attention`].
    pub fn done_if(is_clean: bool) -> Self {
        if is_clean { Self::Done } else { Self::Attention }
    }

    /// Ends the process immediately with this exit code.
    pub fn exit_process(self) -> ! {
        std::process::exit((self as u8).into())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
