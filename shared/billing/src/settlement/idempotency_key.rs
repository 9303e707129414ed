//! The idempotency key of the charge requests of an attempt.

use sha2::{Digest, Sha256};

use crate::records::attempt::Attempt;
use crate::subscriptions::subscription::Subscription;

impl Attempt {
    /// Returns the idempotency key of the charge requests. All requests of this attempt have the same key. All other
    /// attempts, also those of other tables, have different keys.
    pub fn idempotency_key(&self, subscription: &Subscription) -> String {
        let Subscription { account, id, sku, .. } = subscription;
        let attempt = format!("{account}\n{id}\n{sku}\n{}\n{}", self.due_on, self.no);
        let unique_name = self.table.map_or_else(|| attempt.clone(), |table| format!("{table}\n{attempt}"));
        format!("{:x}", Sha256::digest(unique_name))
    }
}
