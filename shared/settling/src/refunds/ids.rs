//! The ids of refunds whose requests do not name one.

use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use billing::{AccountId, GatewayToken, ReceiptId, Refund, RefundStatus};

/// Returns the id of a refund that was made at the gateway itself: the same id whenever an event reports it.
pub(super) fn named_after(gateway_refund: &GatewayToken) -> Ulid {
    hashed(gateway_refund.as_str())
}

/// Returns the id of the refund that an operator names by an idempotency key of their own.
pub fn id_with_key(account: &AccountId, receipt: &ReceiptId, key: &str) -> Ulid {
    hashed(&format!("operator's key\n{account}\n{receipt}\n{key}"))
}

/// Returns the id of the refund that an operator asks for without a key: the same id for the same receipt and amount, so that a command
/// that is repeated after an interruption is the same refund. `stored` are the refunds of the receipt: after a failed refund, the same
/// command is a new one.
pub fn id_without_key(account: &AccountId, receipt: &ReceiptId, minor: Option<i64>, stored: &[Refund]) -> Ulid {
    let amount = minor.map_or_else(|| "remainder".to_owned(), |minor| minor.to_string());
    let nth = |n: usize| hashed(&format!("no key\n{account}\n{receipt}\n{amount}\n{n}"));
    let has_failed = |id: Ulid| stored.iter().any(|refund| refund.id == id && refund.status == RefundStatus::Failed);
    // There are at most as many failed refunds as refunds.
    (0..stored.len()).map(nth).find(|id| !has_failed(*id)).unwrap_or_else(|| nth(stored.len()))
}

fn hashed(name: &str) -> Ulid {
    let digest = Sha256::digest(name);
    Ulid::from_bytes(std::array::from_fn(|place| digest[place]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use billing::{Money, RequestedAmount};

    fn refund(id: Ulid, status: RefundStatus) -> Refund {
        let at = chrono::DateTime::UNIX_EPOCH;
        Refund {
            id,
            account: "acme".parse().unwrap(),
            receipt: "2026-03-31.01JZXCVBNM0123456789ABCDEF.gold".parse().unwrap(),
            payment: "pi_1".parse().unwrap(),
            amount: Money::new(500, "EUR".parse().unwrap()),
            requested: Some(RequestedAmount::Exact),
            status,
            gateway_refund: None,
            code: None,
            created_at: at,
            leased_until: at,
            settled_at: None,
            expires: 0,
            version: 1,
        }
    }

    #[test]
    fn repeated_command_is_the_same_refund_until_it_has_failed() {
        let of = refund(Ulid::nil(), RefundStatus::Succeeded);
        let id = |minor, stored: &[Refund]| id_without_key(&of.account, &of.receipt, minor, stored);
        let first = id(Some(500), &[]);
        for status in [RefundStatus::Pending, RefundStatus::Succeeded] {
            assert_eq!(id(Some(500), &[refund(first, status)]), first);
        }
        let second = id(Some(500), &[refund(first, RefundStatus::Failed)]);
        assert_ne!(second, first);
        let both = [refund(second, RefundStatus::Failed), refund(first, RefundStatus::Failed)];
        assert!(![first, second].contains(&id(Some(500), &both)));
        assert_ne!(id(Some(499), &[]), first);
        assert_ne!(id(None, &[]), first);
        assert_ne!(id_with_key(&of.account, &of.receipt, "a"), id_with_key(&of.account, &of.receipt, "b"));
    }
}
