//! The progress of long work, on standard error.

use std::fmt;
use std::ops::Deref;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressState, ProgressStyle};

use super::output;

/// The time between two printed lines of progress if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// The time between two updates of the display on a terminal.
const UPDATE_INTERVAL: Duration = Duration::from_millis(200);

/// The time after which the remaining time is estimated. Earlier, the estimate would be far too low or too high.
const TIME_BEFORE_ESTIMATE: Duration = Duration::from_secs(2);
/// The message of a progress bar until the work sets another one.
const START_MESSAGE: &str = "starting";

/// Shows the progress of long work: as a progress bar on a terminal, otherwise as a line every ten seconds. Dropping
/// this value removes the progress bar.
#[derive(Debug)]
pub struct ProgressDisplay {
    bar: ProgressBar,
    /// Dropping the sender ends the thread that prints lines.
    _lines: Option<Sender<()>>,
}

impl ProgressDisplay {
    /// Begins to show `bar` with the style `template`, in which `{left}` stands for the remaining time. `line` returns the
    /// line that is printed instead if standard error is not a terminal.
    pub fn show(bar: ProgressBar, template: &str, line: impl Fn(&ProgressBar) -> String + Send + 'static) -> Self {
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", write_time_left));
        if bar.message().is_empty() {
            bar.set_message(START_MESSAGE);
        }
        if !bar.is_hidden() {
            // Show the bar immediately: a short operation may end before the thread for the regular updates has
            // started.
            bar.tick();
            bar.enable_steady_tick(UPDATE_INTERVAL);
            return Self { bar, _lines: None };
        }
        let (lines, ended) = mpsc::channel();
        let shown = bar.clone();
        thread::spawn(move || {
            while ended.recv_timeout(LINE_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                output::print_message(line(&shown));
            }
        });
        Self { bar, _lines: Some(lines) }
    }

    /// Begins to show how many items a search or an export has read. `noun` is the plural noun for these items.
    pub fn of_read_items(noun: &'static str) -> Self {
        let template = format!("{{spinner}} {{human_pos}} {noun} read");
        Self::show(ProgressBar::new_spinner(), &template, move |bar| {
            format!("{} {noun} read", HumanCount(bar.position()))
        })
    }

    /// Creates a [`ProgressDisplay`] that shows nothing.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), _lines: None }
    }
}

/// Writes the remaining time with a comma in front, such as `, 3m left`. Writes nothing while no good estimate is possible.
fn write_time_left(state: &ProgressState, text: &mut dyn fmt::Write) {
    if state.pos() > 0 && state.elapsed() >= TIME_BEFORE_ESTIMATE {
        // The text is a part of the progress bar, which cannot report an error.
        let _ = write!(text, ", {:#} left", HumanDuration(state.eta()));
    }
}

impl Deref for ProgressDisplay {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.bar
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
