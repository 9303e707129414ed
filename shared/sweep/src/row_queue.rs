//! The queue of the rows that a walk over a shard has read and not started yet. Rows of different accounts are
//! processed at the same time. Rows of the same account are processed one after the other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use billing::AccountId;
use store::{DueEntry, DueIndexPosition};

/// A row in the queue.
#[derive(Debug)]
pub(super) struct QueuedRow {
    /// The number of the row in the order in which the walk (the processing of one shard's rows) has read the rows,
    /// from 0.
    pub read_number: u64,
    /// The position of the index entry before this row. A walk that continues after this position begins with this row.
    pub before: Arc<DueIndexPosition>,
    pub due: DueEntry,
}

/// The waiting rows, in the order of the index. While a row of an account is being processed, the other rows of the
/// account wait, and rows of other accounts overtake them.
#[derive(Debug, Default)]
pub(super) struct RowQueue {
    /// The waiting rows that were not moved to `busy`. The next row is taken from this list, unless the row's account
    /// is busy.
    ready: VecDeque<QueuedRow>,
    /// The busy accounts, each with its waiting rows. An account is busy while one of its rows is being processed.
    busy: HashMap<AccountId, VecDeque<QueuedRow>>,
    /// The number of waiting rows, in `ready` and in `busy`.
    len: usize,
}

impl RowQueue {
    /// Returns the number of waiting rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds `row`, which the walk has just read, at the end of the queue.
    pub fn push(&mut self, row: QueuedRow) {
        self.len += 1;
        self.ready.push_back(row);
    }

    /// Removes and returns the first waiting row of an account that is not busy; `None` if there is no such row. The
    /// account is then busy until [`RowQueue::release_account`] is called for it.
    pub fn take_next(&mut self) -> Option<QueuedRow> {
        while let Some(row) = self.ready.pop_front() {
            let account = &row.due.key.account;
            match self.busy.get_mut(account) {
                Some(waiting) => waiting.push_back(row),
                None => {
                    self.busy.insert(account.clone(), VecDeque::new());
                    self.len -= 1;
                    return Some(row);
                }
            }
        }
        None
    }

    /// Marks `account` as not busy, because its row was processed. The account's waiting rows are now the first in the
    /// queue.
    pub fn release_account(&mut self, account: &AccountId) {
        let mut waiting = self.busy.remove(account).unwrap_or_default();
        while let Some(row) = waiting.pop_back() {
            self.ready.push_front(row);
        }
    }

    /// Returns the waiting row that comes first in the index, if there is one, and the number of waiting rows.
    pub fn into_first_and_count(self) -> (Option<QueuedRow>, usize) {
        let len = self.len;
        let waiting = self.ready.into_iter().chain(self.busy.into_values().flatten());
        (waiting.min_by_key(|row| row.read_number), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use billing::Money;
    use store::{Lane, SubscriptionKey};

    /// Returns a row of `account` with the number `read_number`.
    fn new_row(read_number: u64, account: &str) -> QueuedRow {
        let on = "2026-03-31".parse().unwrap();
        let due = DueEntry {
            key: SubscriptionKey {
                account: account.parse().unwrap(),
                subscription: "01JZ0000000000000000000000".parse().unwrap(),
                sku: "gold".parse().unwrap(),
            },
            on,
            due_on: on,
            product_name: "Gold plan".parse().unwrap(),
            amount: Money::new(100, "EUR".parse().unwrap()),
            is_stopped: false,
            cancel_from: None,
        };
        QueuedRow { read_number, before: Arc::new(DueIndexPosition::start_of(Lane::Due, 0)), due }
    }

    /// Takes rows until no further row can be taken, and returns their numbers.
    fn take_all_rows(queue: &mut RowQueue) -> Vec<u64> {
        std::iter::from_fn(|| queue.take_next()).map(|row| row.read_number).collect()
    }

    #[test]
    fn take_next_returns_rows_of_other_accounts_first_and_keeps_the_order_of_each_account() {
        let mut queue = RowQueue::default();
        for (read_number, account) in (0..).zip(["a", "a", "b", "a", "c"]) {
            queue.push(new_row(read_number, account));
        }
        assert_eq!(take_all_rows(&mut queue), [0, 2, 4]);
        assert_eq!(queue.len(), 2);
        queue.push(new_row(5, "a"));
        queue.release_account(&"a".parse().unwrap());
        assert_eq!(take_all_rows(&mut queue), [1]);
        queue.release_account(&"a".parse().unwrap());
        assert_eq!(take_all_rows(&mut queue), [3]);
        queue.release_account(&"a".parse().unwrap());
        assert_eq!((take_all_rows(&mut queue), queue.len()), (vec![5], 0));
    }

    #[test]
    fn into_first_and_count_returns_the_first_row_in_the_index() {
        let mut queue = RowQueue::default();
        for (read_number, account) in (0..).zip(["a", "a", "b", "c"]) {
            queue.push(new_row(read_number, account));
        }
        assert_eq!(queue.take_next().unwrap().read_number, 0);
        assert_eq!(queue.take_next().unwrap().read_number, 2);
        let (first, left) = queue.into_first_and_count();
        assert_eq!((first.unwrap().read_number, left), (1, 2));
    }
}
