//! The question before a change with large effects.

use std::io::{self, IsTerminal as _};

use clap::Args;

use super::output;
use crate::Failure;

/// Asks `question`, and returns the answer. Returns `None` if no person can answer, because standard input or standard
/// error is not a terminal, or if the answer is empty.
pub fn ask(question: &str) -> Option<String> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    output::print_message(question);
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(answer.trim().to_owned()).filter(|answer| !answer.is_empty())
}

/// The option `--yes` of the commands that ask before a change.
#[derive(Clone, Copy, Debug, Args)]
pub struct ConfirmationArgs {
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

impl ConfirmationArgs {
    /// Asks whether to make the change that `question` describes. With `--yes`, the change counts as confirmed without
    /// a question. The change also counts as confirmed if no person can answer, because standard input or standard
    /// error is not a terminal.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the answer is not yes.
    pub fn confirm(self, question: &str) -> Result<(), Failure> {
        self.confirm_change(&format!("{question} This cannot be undone."))
    }

    /// Asks like [`ConfirmationArgs::confirm`] about a change that another command can undo.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the answer is not yes.
    pub fn confirm_change(self, question: &str) -> Result<(), Failure> {
        if self.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Ok(());
        }
        let answer = ask(&format!("{question} Type yes to continue:"));
        if answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")) {
            return Ok(());
        }
        Err(Failure::Refused("nothing was changed: the change was not confirmed".to_owned()))
    }
}
