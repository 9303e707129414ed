//! Findings: in their account for good, and in the list of open findings until a person resolves them.

use aws_sdk_dynamodb::types::{Delete, TransactWriteItem};

use super::items::listed;
use super::{Item, Paging, Table, TableError, keys};
use billing::{AccountId, Finding, Settlement, Subscription};
use dynamo::{ABSENT, Entity as _, List, Next, Rewritten, n};

/// The condition of a write to a finding: nobody has resolved or changed it since it was read.
const UNCHANGED: &str = "#Version = :seen AND attribute_not_exists(#ProcessedDate)";

impl Table {
    /// Every finding that is not resolved. Query of one partition, which is empty as a rule.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_open_findings(&self) -> Result<Vec<Finding>, TableError> {
        self.findings(List::of(keys::OPEN_FINDINGS, keys::FINDINGS)).await
    }

    /// The findings of an account, resolved or not. Query `begins_with(SK, "FND#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_findings_by_account(&self, account: &AccountId) -> Result<Vec<Finding>, TableError> {
        self.findings(List::of(keys::partition(account), keys::FINDINGS)).await
    }

    async fn findings(&self, list: List) -> Result<Vec<Finding>, TableError> {
        self.list(&list, &Paging::all()).await?.read(|item| Finding::from_item(&item)).into_items()
    }

    /// Stores `finding`, unless it is stored already, and counts it at its subscription if it blocks: what counts is
    /// decided by `judge` on the stored item. TransactWriteItems.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn put_finding(
        &self,
        stored: Subscription,
        judge: impl Fn(&Subscription) -> Finding,
    ) -> Result<Finding, TableError> {
        let next = |stored: &Subscription| {
            let finding = judge(stored);
            let counted = stored.open_findings.saturating_add(u32::from(finding.blocks));
            let item = Subscription { open_findings: counted, ..stored.clone() };
            let records = vec![self.put_of_on(finding.to_item(), ABSENT, None), self.put_of(listed(&finding))];
            Ok(Next { records, ..Next::only(item) })
        };
        let judged = judge(&stored);
        let exists = |item: &Item| Finding::from_item(item).map(Box::new);
        match self.rewrite(stored, next, exists).await? {
            Rewritten::Left(stored) => Ok(*stored),
            Rewritten::Applied(_) | Rewritten::Gone => Ok(judged),
        }
    }

    /// Writes what `settle` makes of the subscription of `open` together with `resolved`, and takes the finding from the list of
    /// open ones: TransactWriteItems. `None` if another person has resolved it meanwhile, or if the subscription is gone.
    ///
    /// # Errors
    /// [`TableError`]; or `Ok(Some(Err))` with the reason of `settle`.
    pub async fn resolve_finding<R>(
        &self,
        stored: Subscription,
        open: &Finding,
        resolved: &Finding,
        settle: impl Fn(&Subscription) -> Result<Settlement, R>,
    ) -> Result<Option<Result<Subscription, R>>, TableError> {
        let next = |stored: &Subscription| {
            let settlement = settle(stored).map_err(Some)?;
            let mut next = self.next(settlement);
            next.item.open_findings = stored.open_findings.saturating_sub(u32::from(open.blocks));
            let values = [(":seen".to_owned(), n(open.version))].into();
            next.records.push(self.put_of_on(resolved.to_item(), UNCHANGED, Some(values)));
            let delete = Delete::builder()
                .table_name(self.name())
                .set_key(Some(keys::open_finding(open).attributes()))
                .build()
                .expect("table and key are set");
            next.records.push(TransactWriteItem::builder().delete(delete).build());
            Ok(next)
        };
        match self.rewrite(stored, next, |_| Ok(None)).await? {
            Rewritten::Applied(written) => Ok(Some(Ok(written))),
            Rewritten::Left(Some(reason)) => Ok(Some(Err(reason))),
            Rewritten::Left(None) | Rewritten::Gone => Ok(None),
        }
    }
}
