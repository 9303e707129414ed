//! The command's output: text, tables, error messages and exit codes.

pub mod confirmation;
pub mod csv_writer;
pub mod exit;
pub mod failure;
pub mod local_time;
pub mod output;
pub mod progress;
pub mod report;
pub mod spreadsheet_cell;
pub mod table;
