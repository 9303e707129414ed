//! The rows that were read and wait for their turn: several accounts at a time, the rows of one account one after the
//! other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use billing::AccountId;
use store::{Due, Position};

/// A row that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Its place in the walk.
    pub place: u64,
    /// The position after which the walk comes to it.
    pub before: Arc<Position>,
    pub due: Due,
}

/// Rows in the order of the index. Those of an account that is being worked on wait for it, and let others pass.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<Waiting>,
    /// The accounts that are being worked on, each with its rows that have come since.
    busy: HashMap<AccountId, VecDeque<Waiting>>,
    len: usize,
}

impl Queue {
    /// How many rows wait.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push(&mut self, row: Waiting) {
        self.len += 1;
        self.ready.push_back(row);
    }

    /// The next row whose account is not being worked on, which it is from now on until [`Queue::free`].
    pub fn take(&mut self) -> Option<Waiting> {
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

    /// A row of `account` was worked on: the next of its rows goes first.
    pub fn free(&mut self, account: &AccountId) {
        let mut waiting = self.busy.remove(account).unwrap_or_default();
        while let Some(row) = waiting.pop_back() {
            self.ready.push_front(row);
        }
    }

    /// Empties it: the row that stands first in the index, and how many there were.
    pub fn abandon(self) -> (Option<Waiting>, usize) {
        let len = self.len;
        let waiting = self.ready.into_iter().chain(self.busy.into_values().flatten());
        (waiting.min_by_key(|row| row.place), len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use billing::Money;
    use store::{Lane, SubscriptionKey};

    fn row(place: u64, account: &str) -> Waiting {
        let on = "2026-03-31".parse().unwrap();
        let due = Due {
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
            course: None,
        };
        Waiting { place, before: Arc::new(Position::start_of(Lane::Due, 0)), due }
    }

    fn taken(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.take()).map(|row| row.place).collect()
    }

    #[test]
    fn take_lets_other_accounts_pass_and_keeps_the_order_within_one() {
        let mut queue = Queue::default();
        for (place, account) in (0..).zip(["a", "a", "b", "a", "c"]) {
            queue.push(row(place, account));
        }
        assert_eq!(taken(&mut queue), [0, 2, 4]);
        assert_eq!(queue.len(), 2);
        queue.push(row(5, "a"));
        queue.free(&"a".parse().unwrap());
        assert_eq!(taken(&mut queue), [1]);
        queue.free(&"a".parse().unwrap());
        assert_eq!(taken(&mut queue), [3]);
        queue.free(&"a".parse().unwrap());
        assert_eq!((taken(&mut queue), queue.len()), (vec![5], 0));
    }

    #[test]
    fn abandon_names_the_row_that_stands_first_wherever_it_waits() {
        let mut queue = Queue::default();
        for (place, account) in (0..).zip(["a", "a", "b", "c"]) {
            queue.push(row(place, account));
        }
        assert_eq!(queue.take().unwrap().place, 0);
        assert_eq!(queue.take().unwrap().place, 2);
        let (first, left) = queue.abandon();
        assert_eq!((first.unwrap().place, left), (1, 2));
    }
}
