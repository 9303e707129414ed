//! Finds the account of an item that is outside of the account's own partition, such as a card link (a link to a web
//! page on which a customer enters a card).

use serde::Deserialize;

use billing::DeliveryStatus;
use dynamo::IDEMPOTENCY_RECORDS;

use crate::keys;
use dynamo::Item;

/// The part of the stored response to an idempotent request that contains the account.
#[derive(Deserialize)]
struct ResponseAccount {
    account: String,
}

/// The part of a stored event that contains the account.
#[derive(Deserialize)]
struct EventSubject {
    subject: String,
}

/// Returns the id of the account to which `item` belongs, if an erasure of this account removes the item; `None` for
/// all other items. A webhook delivery that is still pending is not removed: the endpoint must still receive the event,
/// which contains no personal data.
pub fn owner_of_removable_item(item: &Item) -> Option<String> {
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok());
    let pk = text("PK")?;
    let has_prefix = |prefix: &str| pk.starts_with(prefix);
    if has_prefix(keys::SETUPS) || has_prefix(keys::CARD_LINKS) {
        text("Account").cloned()
    } else if has_prefix(keys::LIMITS) {
        keys::account_of_limit(pk)
    } else if has_prefix(IDEMPOTENCY_RECORDS) {
        serde_json::from_str(text("Answer")?).ok().map(|response: ResponseAccount| response.account)
    } else if has_prefix(keys::DELIVERIES_OF_ENDPOINT) && *text("Status")? != DeliveryStatus::Pending.to_string() {
        serde_json::from_str(text("Body")?).ok().map(|event: EventSubject| event.subject)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynamo::Key;

    /// Returns an item with the partition key `pk` and these attributes.
    fn item_with_attributes(pk: &str, attributes: &[(&str, &str)]) -> Item {
        let mut item = Key { pk: pk.to_owned(), sk: pk.to_owned() }.attributes();
        item.extend(attributes.iter().map(|(name, value)| ((*name).to_owned(), dynamo::s(value))));
        item
    }

    #[test]
    fn owner_is_found_in_each_kind_of_item_except_pending_deliveries() {
        let body = r#"{"id": "1", "subject": "acme", "type": "payment.succeeded"}"#;
        let delivery = |status| {
            item_with_attributes("WEBHOOK#01JZXCVBNM0123456789ABCDEF#3", &[("Status", status), ("Body", body)])
        };
        for (item, owner) in [
            (item_with_attributes("SETUP#01JZXCVBNM0123456789ABCDEF", &[("Account", "acme")]), Some("acme")),
            (item_with_attributes("CARDLINK#01JZXCVBNM0123456789ABCDEF", &[("Account", "acme")]), Some("acme")),
            (item_with_attributes("LIMIT#setups#acme#2027-01-31T12", &[]), Some("acme")),
            (
                item_with_attributes("IDEM#0f", &[("Answer", r#"{"account": "acme", "email": "a@example.com"}"#)]),
                Some("acme"),
            ),
            (item_with_attributes("IDEM#0f", &[("Answer", "v1.1.encrypted")]), None),
            (item_with_attributes("IDEM#0f", &[("Answer", r#"{"url": "https://example.com"}"#)]), None),
            (delivery("delivered"), Some("acme")),
            (delivery("failed"), Some("acme")),
            (delivery("pending"), None),
            (item_with_attributes("NOTICE#acme", &[]), None),
            (item_with_attributes("ACC#acme", &[]), None),
        ] {
            assert_eq!(owner_of_removable_item(&item).as_deref(), owner, "{item:?}");
        }
    }
}
