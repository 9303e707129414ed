//! Exit codes: how a command tells the shell what came of it.

use std::process::ExitCode;

/// What came of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// It was done, and nothing needs attention.
    Done = 0,
    /// It was done, and somebody must look: rows failed or were rejected, items cannot be read, a day is not proved, a
    /// payment is not explained, an invariant is broken.
    Attention = 1,
    /// It could not be carried out: wrong arguments, a table or a folder that cannot be used, a refusal.
    Failed = 2,
    /// It was interrupted with Ctrl-C; the number is the shell's own for it.
    Interrupted = 130,
}

impl Exit {
    /// [`Exit::Done`] if nothing needs attention.
    pub fn of(is_clean: bool) -> Self {
        if is_clean { Self::Done } else { Self::Attention }
    }

    /// Ends the process at once.
    pub fn now(self) -> ! {
        std::process::exit((self as u8).into())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
