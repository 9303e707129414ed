//! The question before a change that cannot be undone.

use std::io::{self, IsTerminal as _};

use clap::Args;

use super::output;
use crate::Failure;

/// The option `--yes` of the commands whose changes cannot be undone.
#[derive(Clone, Copy, Debug, Args)]
pub struct ConfirmationArgs {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl ConfirmationArgs {
    /// Asks whether to make the change that `question` describes. Does not ask with `--yes`, or if no person can answer
    /// because standard input or standard error is not a terminal.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the answer is not yes.
    pub fn confirm(self, question: &str) -> Result<(), Failure> {
        if self.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(());
        }
        output::print_message(format!("{question} This cannot be undone. Type yes to continue:"));
        let mut answer = String::new();
        let is_read = io::stdin().read_line(&mut answer).is_ok();
        if is_read && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            return Ok(());
        }
        Err(Failure::Refused("nothing was changed: the change was not confirmed".to_owned()))
    }
}
