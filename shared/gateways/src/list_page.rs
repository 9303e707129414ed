//! List pages of payments, refunds and disputes. The objects of this software are recognized first and then parsed
//! strictly, so an object of another program, or one unreadable object, does not make the whole list unreadable.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use ulid::Ulid;

use super::GatewayError;
use billing::{GatewayToken, Payment};

/// A list page of payments, refunds or disputes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// The position after which the next list page begins; `None` on the last list page. A list page may be empty
    /// although another list page follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The objects on this list page that belong to a payment of this software, or may belong to one, but cannot be
    /// read. They are not among `items`.
    #[serde(skip)]
    pub unreadable: Vec<UnreadableObject>,
}

/// A payment, refund or dispute in a list of the gateway that cannot be read, for example because its currency or its
/// status is unknown, or because its data contradicts itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnreadableObject {
    /// The gateway's id of the object; empty if the gateway returned none.
    pub id: String,
    /// The payment that the object refunds or disputes. Whether the object belongs to this software depends on this
    /// payment. `None` if the object itself is a payment of this software.
    pub payment: Option<GatewayToken>,
    /// The table that requested the payment; `None` if the object does not state it.
    pub table: Option<Ulid>,
    pub reason: String,
}

/// An item of a list: a payment, refund or dispute.
pub(crate) trait ListedItem: PartialEq {
    /// Returns the gateway's id of the item.
    fn id(&self) -> &GatewayToken;

    /// Returns the payment that the item refunds or disputes; `None` if the item is a payment.
    fn payment(&self) -> Option<&GatewayToken> {
        None
    }

    /// Returns the table that requested the payment; `None` if the item does not state it.
    fn requesting_table(&self) -> Option<Ulid> {
        None
    }
}

impl ListedItem for Payment {
    fn id(&self) -> &GatewayToken {
        &self.id
    }

    fn requesting_table(&self) -> Option<Ulid> {
        self.table
    }
}

impl UnreadableObject {
    /// Returns the object with the id in the JSON `object`, which cannot be read for `reason`.
    pub(crate) fn new(object: &Value, payment: Option<GatewayToken>, reason: impl ToString) -> Self {
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        Self { id, payment, table: None, reason: reason.to_string() }
    }
}

impl From<UnreadableObject> for GatewayError {
    fn from(UnreadableObject { id, reason, .. }: UnreadableObject) -> Self {
        Self::Unreadable { reason: format!("{id}: {reason}") }
    }
}

impl<T> ListPage<T> {
    /// Returns the list page with `items`. The next list page begins after the position `next`.
    pub fn new(items: Vec<T>, next: Option<String>) -> Self {
        Self { items, next, unreadable: Vec::new() }
    }

    /// Returns the list page with `items`, after which no other list page follows.
    pub fn last(items: Vec<T>) -> Self {
        Self::new(items, None)
    }

    /// Returns the items, if all objects of this software on the list page could be read.
    ///
    /// # Errors
    /// [`GatewayError::Unreadable`] for the first object that could not be read.
    pub(crate) fn into_complete_items(self) -> Result<Vec<T>, GatewayError> {
        match self.unreadable.into_iter().next() {
            Some(unreadable) => Err(unreadable.into()),
            None => Ok(self.items),
        }
    }
}

impl ListPage<Value> {
    /// Reads the objects of this list page with `read`, which returns `None` for an object of another program. An
    /// object that is listed twice unchanged becomes one item. If its data differs, it also becomes an unreadable
    /// object.
    pub(crate) fn read_items<T: ListedItem>(
        self,
        read: impl Fn(&Value) -> Option<Result<T, UnreadableObject>>,
    ) -> ListPage<T> {
        let mut page = ListPage { items: Vec::new(), next: self.next, unreadable: self.unreadable };
        let mut index_by_id: HashMap<GatewayToken, usize> = HashMap::new();
        for item in self.items.iter().filter_map(read) {
            let item = match item {
                Ok(item) => item,
                Err(unreadable) => {
                    page.unreadable.push(unreadable);
                    continue;
                }
            };
            match index_by_id.entry(item.id().clone()) {
                Entry::Vacant(new) => {
                    new.insert(page.items.len());
                    page.items.push(item);
                }
                Entry::Occupied(listed) if page.items.get(*listed.get()) == Some(&item) => {}
                Entry::Occupied(listed) => page.unreadable.push(UnreadableObject {
                    id: listed.key().to_string(),
                    payment: item.payment().cloned(),
                    table: item.requesting_table(),
                    reason: "the list contains it twice with different data".to_owned(),
                }),
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the JSON of a payment with `id` and the field `status`.
    fn payment_json(id: &str, status: &Value) -> Value {
        json!({
            "id": id, "account": "acme", "subscription": "01JZXCVBNM0123456789ABCDEG", "due_on": "2027-01-31",
            "attempt_no": 1, "amount": 1299, "currency": "EUR", "status": status, "created_at": "2027-01-31T06:00:00Z",
        })
    }

    /// Reads the list page with `objects`, whose objects with the field `foreign` belong to another program.
    fn read_payment_page(objects: Vec<Value>) -> ListPage<Payment> {
        ListPage::last(objects).read_items(|object| match object.get("foreign") {
            Some(_) => None,
            None => Some(Payment::deserialize(object).map_err(|error| UnreadableObject::new(object, None, error))),
        })
    }

    #[test]
    fn payment_that_is_listed_twice_unchanged_is_one_payment() {
        let [paid, other] = ["pay_1", "pay_2"].map(|id| payment_json(id, &json!("succeeded")));
        let page = read_payment_page(vec![paid.clone(), other, paid.clone()]);
        let ids: Vec<&str> = page.items.iter().map(|payment| payment.id.as_str()).collect();
        assert_eq!((ids, page.unreadable), (vec!["pay_1", "pay_2"], vec![]));

        let page = read_payment_page(vec![paid, payment_json("pay_1", &json!("processing"))]);
        assert_eq!((page.items.len(), page.unreadable[0].id.as_str()), (1, "pay_1"));
        let error = page.into_complete_items().unwrap_err();
        assert_eq!(
            error,
            GatewayError::Unreadable { reason: "pay_1: the list contains it twice with different data".to_owned() }
        );
    }

    #[test]
    fn unreadable_object_does_not_make_the_other_objects_unreadable() {
        let objects = vec![
            payment_json("pay_1", &json!("succeeded")),
            payment_json("pay_2", &json!("on_the_moon")),
            json!({"foreign": true, "status": "on_the_moon"}),
            payment_json("pay_3", &json!("processing")),
        ];
        let page = read_payment_page(objects);
        let ids: Vec<&str> = page.items.iter().map(|payment| payment.id.as_str()).collect();
        let unreadable: Vec<&str> = page.unreadable.iter().map(|unreadable| unreadable.id.as_str()).collect();
        assert_eq!((ids, unreadable), (vec!["pay_1", "pay_3"], vec!["pay_2"]));
    }
}
