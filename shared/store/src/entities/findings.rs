//! The requests for findings (successful payments without a receipt). A finding stays in the partition of its account
//! forever. Until a person resolves it, the list of open findings contains a copy.

use aws_sdk_dynamodb::types::{Delete, TransactWriteItem};

use crate::items::open_finding_item;
use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, Finding, NewAction, Period, Settlement, Subscription, SubscriptionId};
use dynamo::{ABSENT, Entity as _, ItemRewrite, NotRewritten, PrefixQuery, n};
use dynamo::{Item, Page, Paging, TableError};

/// A condition expression that is true if a finding is still open, and unchanged since it was read.
const FINDING_UNCHANGED: &str = "#Version = :seen AND attribute_not_exists(#ProcessedDate)";

impl Table {
    /// Returns whether the list of open findings contains `finding`, but its account has no such open finding. A finding that
    /// was resolved after the list was read is not lost. Sends one GetItem request, or two if the finding is not open.
    pub async fn has_lost_finding(&self, finding: &Finding) -> Result<bool, TableError> {
        let stored = self.get(keys::key_of_finding(finding)).await?;
        let is_open =
            stored.is_some_and(|item| Finding::from_item(&item).is_ok_and(|stored| stored.resolved.is_none()));
        Ok(!is_open && self.get(keys::key_of_open_finding(finding)).await?.is_some())
    }

    /// Returns all open findings of the table. Sends a Query for the partition of the open findings, which is usually
    /// empty.
    pub async fn get_open_findings(&self) -> Result<Vec<Finding>, TableError> {
        self.get_findings(PrefixQuery::new(keys::OPEN_FINDINGS, keys::FINDINGS)).await
    }

    /// Returns all open findings of the table, and an error for each that cannot be read. Sends the Query of
    /// [`Table::get_open_findings`].
    pub async fn list_open_findings(&self) -> Result<Page<Finding>, TableError> {
        let list = PrefixQuery::new(keys::OPEN_FINDINGS, keys::FINDINGS);
        Ok(self.list_items(&list, &Paging::all()).await?.read(|item| Finding::from_item(&item)))
    }

    /// Returns the findings of an account, open and resolved. Sends a Query with `begins_with(SK, "FND#")`.
    pub async fn get_findings_by_account(&self, account: &AccountId) -> Result<Vec<Finding>, TableError> {
        self.get_findings(PrefixQuery::new(keys::partition_key_of_account(account), keys::FINDINGS)).await
    }

    /// Returns the number of open findings that block charges of the subscription `id` and are about payments of later
    /// months than `month`. Sends the Query of [`Table::get_findings_by_account`].
    pub async fn count_findings_after(
        &self,
        account: &AccountId,
        id: SubscriptionId,
        month: Period,
    ) -> Result<u32, TableError> {
        let findings = self.get_findings_by_account(account).await?;
        let is_later = |finding: &&Finding| {
            finding.subscription == id && finding.resolved.is_none() && finding.blocks && finding.period() > month
        };
        Ok(u32::try_from(findings.iter().filter(is_later).count()).unwrap_or(u32::MAX))
    }

    /// Returns all findings in `list`.
    async fn get_findings(&self, list: PrefixQuery) -> Result<Vec<Finding>, TableError> {
        self.list_items(&list, &Paging::all()).await?.read(|item| Finding::from_item(&item)).into_items()
    }

    /// Creates the finding that `new_finding` returns for the stored subscription, unless it exists. If the finding
    /// blocks charges, also increments the subscription's number of open findings. Returns the stored finding; `None` if
    /// the subscription no longer exists, so that nothing was stored. Sends one TransactWriteItems request per try.
    pub async fn put_finding(
        &self,
        stored: Subscription,
        new_finding: impl Fn(&Subscription) -> Finding,
    ) -> Result<Option<Finding>, TableError> {
        let next = |stored: &Subscription| {
            let finding = new_finding(stored);
            let open_findings = stored.open_findings.saturating_add(u32::from(finding.blocks));
            let item = Subscription { open_findings, ..stored.clone() };
            let records =
                vec![self.build_put_if(finding.to_item(), ABSENT, None), self.build_put(open_finding_item(&finding))];
            Ok((ItemRewrite { records, ..ItemRewrite::without_records(item) }, finding))
        };
        let exists = |item: &Item| Finding::from_item(item).map(Box::new);
        match self.rewrite_with_output(stored, next, exists).await {
            Ok((_, finding)) => Ok(Some(finding)),
            Err(refused) => Ok(refused.into_reason()?.map(|stored| *stored)),
        }
    }

    /// Resolves the finding `open`: writes the settlement that `settle` returns for the subscription, replaces the
    /// finding with `resolved`, removes the finding from the list of open findings, and writes the action-log entry of
    /// `action`. Sends one TransactWriteItems request per try.
    ///
    /// Returns the written settlement, whose subscription is the stored one.
    ///
    /// # Errors
    /// - [`NotRewritten::Missing`] if another person has resolved the finding after it was read, or if the subscription
    ///   does not exist any more.
    /// - [`NotRewritten::Unchanged`] if `settle` returns an error.
    pub async fn resolve_finding<R>(
        &self,
        stored: Subscription,
        open: &Finding,
        resolved: &Finding,
        action: Option<&NewAction>,
        settle: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Settlement, NotRewritten<R>> {
        let next = |stored: &Subscription| {
            let settlement = settle(stored).map_err(Some)?;
            let mut rewrite = self.rewrite_of_settlement(&settlement);
            rewrite.item.open_findings = stored.open_findings.saturating_sub(u32::from(open.blocks));
            let values = [(":seen".to_owned(), n(open.version))].into();
            rewrite.records.push(self.build_put_if(resolved.to_item(), FINDING_UNCHANGED, Some(values)));
            let delete = Delete::builder()
                .table_name(self.name())
                .set_key(Some(keys::key_of_open_finding(open).attributes()))
                .build()
                .expect("table name and key are set");
            rewrite.records.push(TransactWriteItem::builder().delete(delete).build());
            rewrite.records.extend(action.map(|action| self.build_action_put(&action.on_finding(stored, resolved))));
            Ok((rewrite, settlement))
        };
        match self.rewrite_with_output(stored, next, |_| Ok(None)).await {
            Ok((subscription, settlement)) => Ok(Settlement { subscription, ..settlement }),
            Err(refused) => Err(match refused.into_reason()?.flatten() {
                Some(reason) => NotRewritten::Unchanged(reason),
                None => NotRewritten::Missing,
            }),
        }
    }
}
