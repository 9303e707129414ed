//! The question before a change with large effects.

use std::io::{self, IsTerminal as _};

use clap::Args;

use super::output;
use crate::Failure;

/// Returns whether a person can answer a question: whether standard input and standard error are terminals.
fn is_person_present() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks `question`, and returns the answer. Returns `None` if no person can answer, because standard input or standard
/// error is not a terminal, or if the answer is empty.
pub fn ask_question(question: &str) -> Option<String> {
    if !is_person_present() {
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
    /// Confirm the change without a question; required if no terminal is connected and the change cannot be undone
    #[arg(long)]
    yes: bool,
}

impl ConfirmationArgs {
    /// Asks whether to make the change that `question` describes, which cannot be undone. With `--yes`, the change
    /// counts as confirmed without a question.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the answer is not yes, or if no person can answer, because standard input or standard
    /// error is not a terminal.
    pub fn confirm(self, question: &str) -> Result<(), Failure> {
        if !self.yes && !is_person_present() {
            let reason = format!("{question} This cannot be undone. Nothing was changed; add --yes to confirm it");
            return Err(Failure::Refused(reason));
        }
        self.confirm_change(&format!("{question} This cannot be undone."))
    }

    /// Asks like [`ConfirmationArgs::confirm`] about a change that another command can undo. The change counts as
    /// confirmed if no person can answer.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the answer is not yes.
    pub fn confirm_change(self, question: &str) -> Result<(), Failure> {
        if self.yes || !is_person_present() {
            return Ok(());
        }
        let answer = ask_question(&format!("{question} Type yes to continue:"));
        if answer.is_some_and(|answer| matches!(answer.to_lowercase().as_str(), "y" | "yes")) {
            return Ok(());
        }
        Err(Failure::Refused("nothing was changed: the change was not confirmed".to_owned()))
    }
}
