//! Computes the ids of refunds that are not requested with an id: the refunds that operators request without an id, and
//! the refunds that are made at the gateway itself.

use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use billing::{AccountId, GatewayToken, ReceiptId, Refund, RefundStatus};

/// Returns the id under which a refund that was made at the gateway itself is stored. The id is computed from the
/// gateway's id `gateway_refund`, so it is the same for every event that reports the refund.
pub(super) fn id_of_gateway_refund(gateway_refund: &GatewayToken) -> Ulid {
    refund_id_from_hash(gateway_refund.as_str())
}

/// Returns the id of a refund that an operator requests with the idempotency key `key`.
pub fn refund_id_with_key(account: &AccountId, receipt: &ReceiptId, key: &str) -> Ulid {
    refund_id_from_hash(&format!("operator's key\n{account}\n{receipt}\n{key}"))
}

/// Returns the id of a refund that an operator requests without an idempotency key. The id is the same for the same
/// receipt and amount (`None`: the whole remaining amount), so a command that is repeated after an interruption does
/// not make a second refund. `stored` are the stored refunds of the receipt: if the refund with this id has failed, the
/// function returns another id, so that the same command makes a new refund.
pub fn refund_id_without_key(account: &AccountId, receipt: &ReceiptId, minor: Option<i64>, stored: &[Refund]) -> Ulid {
    let amount = minor.map_or_else(|| "remainder".to_owned(), |minor| minor.to_string());
    let nth_id = |n: usize| refund_id_from_hash(&format!("no key\n{account}\n{receipt}\n{amount}\n{n}"));
    let has_failed = |id: Ulid| stored.iter().any(|refund| refund.id == id && refund.status == RefundStatus::Failed);
    // At most `stored.len()` refunds have failed, so at least one of the ids with the numbers 0 to `stored.len()` is
    // not the id of a failed refund.
    (0..stored.len()).map(nth_id).find(|id| !has_failed(*id)).unwrap_or_else(|| nth_id(stored.len()))
}

/// Returns an id that depends only on `name`: the first 128 bits of its SHA-256.
fn refund_id_from_hash(name: &str) -> Ulid {
    let digest = Sha256::digest(name);
    Ulid::from_bytes(std::array::from_fn(|index| digest[index]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use billing::{Money, RequestedAmount};

    /// Returns a refund with this id and status.
    fn new_refund(id: Ulid, status: RefundStatus) -> Refund {
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
    fn refund_id_without_key_is_the_same_for_a_repeated_command_until_the_refund_has_failed() {
        let of = new_refund(Ulid::nil(), RefundStatus::Succeeded);
        let id = |minor, stored: &[Refund]| refund_id_without_key(&of.account, &of.receipt, minor, stored);
        let first = id(Some(500), &[]);
        for status in [RefundStatus::Pending, RefundStatus::Succeeded] {
            assert_eq!(id(Some(500), &[new_refund(first, status)]), first);
        }
        let second = id(Some(500), &[new_refund(first, RefundStatus::Failed)]);
        assert_ne!(second, first);
        let both = [new_refund(second, RefundStatus::Failed), new_refund(first, RefundStatus::Failed)];
        assert!(![first, second].contains(&id(Some(500), &both)));
        assert_ne!(id(Some(499), &[]), first);
        assert_ne!(id(None, &[]), first);
        assert_ne!(
            refund_id_with_key(&of.account, &of.receipt, "a"),
            refund_id_with_key(&of.account, &of.receipt, "b")
        );
    }
}
