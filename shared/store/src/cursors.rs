//! The cursors of lists: each goes on in lists of its own kind alone.

use dynamo::Cursor;

use super::{Table, keys};

impl Table {
    /// The cursor of a list of subscriptions that was written as `text`.
    pub fn cursor_of_subscriptions(text: String) -> Option<Cursor> {
        Cursor::in_list(keys::SUBSCRIPTIONS, text)
    }

    /// The cursor of a list of receipts that was written as `text`.
    pub fn cursor_of_receipts(text: String) -> Option<Cursor> {
        Cursor::in_list(keys::RECEIPTS, text)
    }

    /// The cursor of a list of run records that was written as `text`.
    pub fn cursor_of_runs(text: String) -> Option<Cursor> {
        Cursor::in_list(keys::RUNS, text)
    }

    /// The cursor of a list of webhook endpoints that was written as `text`.
    pub fn cursor_of_webhook_endpoints(text: String) -> Option<Cursor> {
        Cursor::in_list(keys::WEBHOOK_ENDPOINTS, text)
    }

    /// The cursor of a list of deliveries that was written as `text`.
    pub fn cursor_of_deliveries(text: String) -> Option<Cursor> {
        Cursor::in_list(keys::DELIVERIES, text)
    }

    /// Before the first run record.
    pub fn cursor_before_runs() -> Cursor {
        Cursor::after(keys::RUNS.to_owned())
    }
}
