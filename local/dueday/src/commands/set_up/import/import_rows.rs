//! Imports the rows of a file into the table, several batches concurrently.

use std::io::Read;
use std::pin::pin;

use futures::{StreamExt as _, stream};
use indicatif::{HumanCount, ProgressBar};

use super::batch::split_into_batches;
use super::file_rows::{AccountsOfFile, RowsOfDryRun};
use super::importer::Importer;
use super::outcome::RowImportOutcome;
use super::rejects::RejectsFile;
use super::rows::ImportRowReader;
use super::summary::ImportReport;
use crate::Failure;
use crate::commands::find::duplicates::{DuplicateGroup, DuplicateSearch};

impl Importer<'_> {
    /// Imports all rows, and counts them in `report`. The memory usage grows only by a few hashes for each account of
    /// the file. A dry run keeps the ids of all rows and of all stored subscriptions in memory.
    ///
    /// # Errors
    /// If the file, the table or the file of rejects can no longer be used. `report` then contains the rows that were
    /// imported before. Rows that were imported at the same time as the failed row may be missing.
    pub async fn import_all_rows(
        &self,
        mut rows: ImportRowReader<impl Read>,
        mut rejects: RejectsFile,
        bar: &ProgressBar,
        report: &mut ImportReport,
    ) -> Result<(), Failure> {
        report.dry_run = self.is_dry_run;
        let mut duplicates = DuplicateSearch::default();
        if self.is_dry_run {
            duplicates.add_subscriptions_of_table(&self.open_table.table).await?;
        }
        let (mut accounts, mut dry_run) = (AccountsOfFile::default(), RowsOfDryRun::default());
        let read = std::iter::from_fn(|| rows.next_row().transpose()).map(|row| row.map(|row| accounts.check_row(row)));
        let concurrency = self.context.config.limits.concurrency;
        let batches =
            stream::iter(split_into_batches(read)).map(|rows| self.import_batch(rows)).buffered(concurrency.max(1));
        let mut outcomes = pin!(batches.flat_map(stream::iter));
        while let Some(outcome) = outcomes.next().await {
            let (line, outcome) = outcome?;
            report.rows += 1;
            let outcome = if self.is_dry_run { dry_run.compare_row(outcome, line) } else { outcome };
            let rejections = match outcome {
                RowImportOutcome::Created { subscription, .. } => {
                    if self.is_dry_run {
                        duplicates.add_subscription(&subscription, Some(line));
                    }
                    report.count_created(&subscription);
                    Vec::new()
                }
                RowImportOutcome::AlreadyThere => {
                    report.already_there += 1;
                    Vec::new()
                }
                RowImportOutcome::Differs(rejections) => {
                    report.differs += 1;
                    rejections
                }
                RowImportOutcome::Rejected(rejections) => {
                    report.rejected += 1;
                    rejections
                }
            };
            rejections.into_iter().try_for_each(|rejected| rejects.add_rejected_row(rejected))?;
            bar.set_message(format!("{} rows", HumanCount(report.rows)));
        }
        let is_of_file = |group: &DuplicateGroup| group.iter().any(|id| id.line.is_some());
        report.probable_duplicates = duplicates.find_duplicate_groups().into_iter().filter(is_of_file).collect();
        report.rejects = (!report.is_complete()).then_some(rejects.path);
        Ok(())
    }
}
