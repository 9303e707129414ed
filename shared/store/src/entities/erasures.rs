//! The requests for the erasure of an account. While an erasure runs, its progress is in the list of erasures. At the
//! end of the erasure, a mark replaces the account, so that no other account gets the same id.

use aws_sdk_dynamodb::types::{ReturnValue, TransactWriteItem};
use chrono::{DateTime, Utc};
use ulid::Ulid;

use crate::items::read_account;
use crate::keys;
use crate::table::payments_table::{PaymentsSchema, Table};
use billing::{Account, AccountId, ERASED, ErasedAccount, Erasure, NewAction};
use dynamo::{
    Entity as _, IDEMPOTENCY_RECORDS, ItemRewrite, Items, PRESENT, PrefixQuery, Query, Scan, TransactionOutcome,
    UpdateItemOutcome, Values, key_of_item, n, s, values, with_next_version,
};
use dynamo::{Item, Key, Page, Paging, TableError};

/// The condition of the writes that need an account: the account exists, and its erasure was not requested. The mark of
/// an erased account also has the attribute `ErasureDate`, so these writes fail for an erased account.
pub(crate) const IS_NOT_ERASED: &str = "attribute_exists(#PK) AND attribute_not_exists(#ErasureDate)";

/// The filter for items that can belong to an account, but are stored in other partitions than that of the account.
const FILTER_OF_OTHER_PARTITIONS: &str = "begins_with(#PK, :idempotency) OR begins_with(#PK, :setups) OR \
    begins_with(#PK, :card_links) OR begins_with(#PK, :limits) OR begins_with(#PK, :deliveries)";

/// The number of items that one Query request of an erasure reads.
const PAGE_ITEMS: usize = 100;

/// The stored state of an account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredAccount {
    /// The account exists. Its erasure may have been requested.
    Account(Account),
    /// The account was erased.
    Erased(ErasedAccount),
}

impl Table {
    /// Builds the part of a transaction that checks that `account` exists, and that its erasure was not requested.
    pub fn build_account_check(&self, account: &AccountId) -> TransactWriteItem {
        self.build_condition_check(keys::key_of_account(account), IS_NOT_ERASED, Values::new())
    }

    /// Returns the account `id`, or the mark of its erasure; `None` if neither exists. Sends one strongly consistent
    /// GetItem request.
    pub async fn get_stored_account(&self, id: &AccountId) -> Result<Option<StoredAccount>, TableError> {
        let Some(item) = self.get(keys::key_of_account(id)).await? else { return Ok(None) };
        Ok(Some(match read_account(&item)? {
            Some(account) => StoredAccount::Account(account),
            None => StoredAccount::Erased(ErasedAccount::from_item(&item)?),
        }))
    }

    /// Marks the account `stored` for erasure at `now`, and creates its erasure with the action-log entry of `action`.
    /// After this mark, the account cannot be changed. Returns the erasure; if the erasure was requested before,
    /// returns the stored erasure. Returns `None` if the account does not exist any more. Sends one TransactWriteItems
    /// request per try.
    pub async fn request_erasure(
        &self,
        stored: Account,
        action: &NewAction,
        now: DateTime<Utc>,
    ) -> Result<Option<Erasure>, TableError> {
        let erasure = Erasure::new(stored.id.clone(), now);
        let mark = |stored: &Account| {
            if stored.erasure_requested_at.is_some() {
                return None;
            }
            let item = Account { erasure_requested_at: Some(now), ..stored.clone() };
            let log_entry = Some(self.build_action_put(&action.on_account(Some(stored), &item)));
            let records = vec![self.build_put(erasure.to_item())];
            Some(ItemRewrite { records, log_entry, ..ItemRewrite::without_records(item) })
        };
        let account = stored.id.clone();
        match self.change_with_records(stored, mark).await? {
            Some(_) => self.get_erasure(&account).await,
            None => Ok(None),
        }
    }

    /// Returns the erasure of `account`; `None` if no erasure is in progress. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_erasure(&self, account: &AccountId) -> Result<Option<Erasure>, TableError> {
        self.get(keys::key_of_erasure(account)).await?.map(|item| Erasure::from_item(&item)).transpose()
    }

    /// Returns the erasures in progress. Sends a Query with `PK = ERASURES`.
    pub async fn get_erasures(&self, paging: &Paging) -> Result<Page<Erasure>, TableError> {
        let list = PrefixQuery::new(keys::ERASURES, keys::ERASURE);
        Ok(self.list_items(&list, paging).await?.read(|item| Erasure::from_item(&item)))
    }

    /// Stores `next`, the later progress of the erasure `stored`. Returns the stored erasure. Sends one UpdateItem
    /// request.
    ///
    /// # Errors
    /// [`TableError::Contended`] if another process continues the same erasure.
    pub async fn update_erasure(&self, stored: &Erasure, next: Erasure) -> Result<Erasure, TableError> {
        let written = with_next_version::<PaymentsSchema, _>(stored, next.clone());
        let change = |current: &Erasure| (current == stored).then(|| next.clone());
        match self.change_item(stored.clone(), change).await? {
            Some(current) if current == written => Ok(written),
            _ => Err(TableError::Contended { key: stored.key() }),
        }
    }

    /// Replaces the account of `erasure` by the mark that it was erased at `now`, and removes the erasure from the
    /// list, in one transaction. Does nothing if the account was replaced before. Sends a GetItem and a
    /// TransactWriteItems request.
    ///
    /// # Errors
    /// [`TableError::Contended`] if another process changes the account at the same time.
    pub async fn finish_erasure(&self, erasure: &Erasure, now: DateTime<Utc>) -> Result<(), TableError> {
        let Some(StoredAccount::Account(account)) = self.get_stored_account(&erasure.account).await? else {
            return Ok(());
        };
        let erased = ErasedAccount {
            id: account.id.clone(),
            requested_at: erasure.requested_at,
            erased_at: now,
            counts: erasure.counts,
            version: account.version.saturating_add(1),
        };
        let seen = values([(":seen", n(account.version))]);
        let put = self.build_put_if(erased.to_item(), "#Version = :seen", Some(seen));
        let writes = vec![put, self.build_delete(keys::key_of_erasure(&erasure.account))];
        if let TransactionOutcome::Written = self.transact_with_retries(writes).await? {
            return Ok(());
        }
        // The SDK has retried the request: an earlier try succeeded, but its response was lost.
        match self.get_stored_account(&erasure.account).await? {
            Some(StoredAccount::Erased(_)) => Ok(()),
            _ => Err(TableError::Contended { key: account.key() }),
        }
    }

    /// Returns the items of `account` whose sort keys begin with `prefix`, after the sort key `after`. [`Items`] sends
    /// strongly consistent Query requests for 100 items each.
    pub fn items_of_account(&self, account: &AccountId, prefix: &str, after: Option<String>) -> Items {
        let partition = keys::partition_key_of_account(account);
        let condition = match prefix {
            "" => "#PK = :partition",
            _ => "#PK = :partition AND begins_with(#SK, :prefix)",
        };
        let mut values = values([(":partition", s(&partition))]);
        if !prefix.is_empty() {
            values.insert(":prefix".to_owned(), s(prefix));
        }
        let after = after.map(|sk| Key { pk: partition, sk }.attributes());
        self.query(Query { page_items: Some(PAGE_ITEMS), after, ..Query::new(condition, values) })
    }

    /// Returns the entries of the action log about `account` that were made with the order desk. [`Items`] sends strongly
    /// consistent Query requests for 100 items each.
    pub fn order_actions_of_account(&self, account: &AccountId) -> Items {
        let values = values([(":partition", s(keys::partition_key_of_order_actions(account)))]);
        self.query(Query { page_items: Some(PAGE_ITEMS), ..Query::new("#PK = :partition", values) })
    }

    /// Returns the items of the subscriptions of `account`, after the sort key `after`, like
    /// [`Table::items_of_account`].
    pub fn subscription_items(&self, account: &AccountId, after: Option<String>) -> Items {
        self.items_of_account(account, keys::SUBSCRIPTIONS, after)
    }

    /// Returns the items of `account` that can prevent its erasure: its subscriptions, refunds, disputes and findings,
    /// and the entries of its action log since `actions_since`. Each [`Items`] sends strongly consistent Query
    /// requests, one for each page of 1 MB.
    pub fn items_that_can_prevent_erasure(&self, account: &AccountId, actions_since: DateTime<Utc>) -> [Items; 5] {
        let partition = keys::partition_key_of_account(account);
        let with_prefix = |prefix: &str| {
            let values = values([(":partition", s(&partition)), (":prefix", s(prefix))]);
            self.query(Query::new("#PK = :partition AND begins_with(#SK, :prefix)", values))
        };
        let sort_key = |id: Ulid| s(keys::sort_key_of_action(id));
        // The id of an action begins with the time of the action, so a range of ids is a range of times.
        let first = Ulid::from_parts(u64::try_from(actions_since.timestamp_millis()).unwrap_or_default(), 0);
        let bounds =
            [(":partition", s(&partition)), (":first", sort_key(first)), (":last", sort_key(Ulid::from(u128::MAX)))];
        let actions = Query::new("#PK = :partition AND #SK BETWEEN :first AND :last", values(bounds));
        let [subscriptions, refunds, disputes, findings] =
            [keys::SUBSCRIPTIONS, keys::REFUNDS, keys::DISPUTES, keys::FINDINGS].map(with_prefix);
        [subscriptions, refunds, disputes, findings, self.query(actions)]
    }

    /// Returns the items that can belong to an account, but are stored in other partitions than that of the account:
    /// idempotency records, setups of payment methods, card links, limits and deliveries. Starts after the key `after`,
    /// the last key of an earlier call; with `None`, at the first item. [`Items`] sends strongly consistent Scan
    /// requests.
    pub fn items_of_other_partitions(&self, after: Option<Key>) -> Items {
        let values = values([
            (":idempotency", s(IDEMPOTENCY_RECORDS)),
            (":setups", s(keys::SETUPS)),
            (":card_links", s(keys::CARD_LINKS)),
            (":limits", s(keys::LIMITS)),
            (":deliveries", s(keys::DELIVERIES_OF_ENDPOINT)),
        ]);
        self.dynamo.scan(Scan::filtered(FILTER_OF_OTHER_PARTITIONS, values).after(after))
    }

    /// Deletes the item `key`, if it exists. Sends one DeleteItem request.
    pub async fn delete_item(&self, key: Key) -> Result<(), TableError> {
        self.dynamo.delete(key).await
    }

    /// Removes the personal data from the stored `item`, and keeps its other attributes. Returns whether the item
    /// contained personal data. Sends at most one UpdateItem request. The personal data are:
    /// - of a receipt, the e-mail address, the card and the gateway's id of the customer;
    /// - of an attempt record, the gateway's id of the customer;
    /// - of a dispute, the token of the payment method;
    /// - of a finding, the reason of its resolution;
    /// - of an entry of the action log, the reason, and the name of the actor if the account itself acted.
    pub async fn pseudonymise_item(&self, item: &Item) -> Result<bool, TableError> {
        let Some((expression, values)) = change_without_personal_data(item) else { return Ok(false) };
        let update = self.build_update(key_of_item(item), &expression, PRESENT, values);
        match self.send_update(update, ReturnValue::None).await? {
            UpdateItemOutcome::Updated(_) => Ok(true),
            // The item has expired and was deleted since it was read.
            UpdateItemOutcome::ConditionFailed(_) => Ok(false),
        }
    }
}

/// Returns the update expression that removes the personal data of `item`, with the values of the expression; `None` if
/// `item` contains no personal data.
fn change_without_personal_data(item: &Item) -> Option<(String, Values)> {
    let sk = key_of_item(item).sk;
    let is = |prefix: &str| sk.starts_with(prefix);
    let text = |name: &str| item.get(name).and_then(|value| value.as_s().ok());
    let removed: &[&str] = match () {
        () if is(keys::RECEIPTS) => &["Email", "Card", "GatewayCustomerId"],
        () if is(keys::ATTEMPTS) => &["GatewayCustomerId"],
        () if is(keys::ACTIONS) && text("ActorKind").is_some_and(|kind| kind == "account") => &["ActorName", "Reason"],
        () if is(keys::ACTIONS) => &["Reason"],
        () => &[],
    };
    let replaced = match () {
        () if is(keys::DISPUTES) => Some("PaymentMethod"),
        () if is(keys::FINDINGS) => Some("Resolution"),
        () => None,
    };
    let removed: Vec<String> =
        removed.iter().filter(|name| item.contains_key(**name)).map(|name| format!("#{name}")).collect();
    if let Some(name) = replaced.filter(|name| text(name).is_some_and(|text| text != ERASED)) {
        return Some((format!("SET #{name} = :erased"), values([(":erased", s(ERASED))])));
    }
    (!removed.is_empty()).then(|| (format!("REMOVE {}", removed.join(", ")), Values::new()))
}
