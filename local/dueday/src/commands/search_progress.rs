//! The progress of a search that reads the whole table.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::terminal::output;

/// The time between two updates of the displayed number.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// Shows on standard error how many items a search has read. Dropping this value removes the display.
#[derive(Debug)]
pub struct SearchProgress(ProgressBar);

impl SearchProgress {
    /// Begins to show the progress. If `is_search` is false, the command reads only the first items, and nothing is
    /// shown.
    pub fn start(is_search: bool, noun: &str) -> Self {
        if !is_search {
            return Self(ProgressBar::hidden());
        }
        output::print_message(format!("Reading all {noun} of the table: no index contains this property."));
        let template = format!("{{spinner}} {{human_pos}} {noun} read");
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.enable_steady_tick(UPDATE_INTERVAL);
        Self(bar)
    }

    /// Counts one more item.
    pub fn count(&self) {
        self.0.inc(1);
    }
}

impl Drop for SearchProgress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
