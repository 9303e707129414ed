//! Reads the cursors of lists. Each function returns `None` if the text cannot be a cursor of its kind of list.

use dynamo::Cursor;

use crate::keys;
use crate::table::payments_table::Table;

impl Table {
    /// Reads from `text` the cursor of a list of subscriptions; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_subscriptions(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::SUBSCRIPTIONS, text)
    }

    /// Reads from `text` the cursor of a list of receipts; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_receipts(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::RECEIPTS, text)
    }

    /// Reads from `text` the cursor of a list of run records; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_runs(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::RUNS, text)
    }

    /// Reads from `text` the cursor of a list of webhook endpoints; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_webhook_endpoints(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::WEBHOOK_ENDPOINTS, text)
    }

    /// Reads from `text` the cursor of a list of deliveries; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_deliveries(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::DELIVERIES, text)
    }

    /// Returns the cursor before the first run record: a list after this cursor begins with the first run record.
    pub fn cursor_before_runs() -> Cursor {
        Cursor::after(keys::RUNS.to_owned())
    }
}
