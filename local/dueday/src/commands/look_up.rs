//! `dueday accounts`, `dueday subscriptions`, `dueday receipts`: what is in the table.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;

use api::{AccountView, ReceiptView, SubscriptionView};
use serde::Serialize;
use shared::billing::{Account, AccountId, Receipt, Subscription};
use shared::clock::{Clock, SystemClock};
use shared::table::{Page, Paging, TableError};

use crate::Failure;
use crate::arguments::{Accounts, Receipts, Settings, Subscriptions};
use crate::machine::data::Opened;
use crate::terminal::output::{self, Column, count, grouped};

const ACCOUNT_COLUMNS: [Column; 6] = [
    Column::whole("account"),
    Column::text("name"),
    Column::text("e-mail"),
    Column::extra("locale"),
    Column::extra("mail"),
    Column::extra("since"),
];
/// The columns of a table of subscriptions.
pub const SUBSCRIPTION_COLUMNS: [Column; 8] = [
    Column::whole("subscription"),
    Column::text("account"),
    Column::text("product"),
    Column::whole("status"),
    Column::number("amount"),
    Column::whole(""),
    Column::extra("due date"),
    Column::extra("next payment"),
];
const RECEIPT_COLUMNS: [Column; 6] = [
    Column::whole("due date"),
    Column::text("product"),
    Column::number("amount"),
    Column::whole(""),
    Column::extra("paid at"),
    Column::extra("payment"),
];

/// The first items of a list, and what cannot be read among them.
struct Found<T> {
    items: Vec<T>,
    has_more: bool,
    unreadable: Vec<TableError>,
}

impl<T> Found<T> {
    fn none() -> Self {
        Self { items: Vec::new(), has_more: false, unreadable: Vec::new() }
    }

    fn page(page: Page<T>) -> Self {
        Self { has_more: page.next.is_some(), items: page.items, unreadable: page.unreadable }
    }

    /// Takes one more, up to `limit`.
    fn take(&mut self, item: Result<T, TableError>, limit: usize) -> ControlFlow<()> {
        if self.items.len() == limit {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        match item {
            Ok(item) => self.items.push(item),
            Err(error) => self.unreadable.push(error),
        }
        ControlFlow::Continue(())
    }

    /// Shows it as JSON, or as a table of `rows` under `header`.
    fn show<V: From<T> + Serialize>(
        self,
        settings: &Settings,
        noun: &str,
        columns: &[Column],
        row: impl Fn(&T) -> Vec<String>,
    ) -> Result<ExitCode, Failure> {
        if settings.json {
            output::json(&self.items.into_iter().map(V::from).collect::<Vec<_>>())?;
        } else {
            let shown = self.items.len();
            let mut text = if shown == 0 { String::new() } else { output::table(columns, self.items.iter().map(row)) };
            let number = u64::try_from(shown).unwrap_or(u64::MAX);
            text += &match self.has_more {
                true => format!("the first {} {noun}s; --limit shows more\n", grouped(number)),
                false => count(number, noun) + "\n",
            };
            output::print(&text)?;
        }
        for error in &self.unreadable {
            eprintln!("unreadable: {error}");
        }
        Ok(if self.unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

async fn open(settings: &Settings) -> Result<Opened, Failure> {
    Opened::open(settings, Arc::new(SystemClock)).await
}

fn no_account(account: &AccountId) -> Failure {
    Failure::Refused(format!("there is no account {account}"))
}

pub async fn accounts(settings: &Settings, command: &Accounts) -> Result<ExitCode, Failure> {
    let Opened { table, .. } = &open(settings).await?;
    let mut found = Found::none();
    match &command.account {
        Some(id) => found.items.push(table.get_account(id).await?.ok_or_else(|| no_account(id))?),
        None => table.scan_accounts(|account| found.take(account, command.limit.limit)).await?,
    }
    found.show::<AccountView>(settings, "account", &ACCOUNT_COLUMNS, |account: &Account| {
        vec![
            account.id.to_string(),
            account.name.as_str().to_owned(),
            account.email.as_str().to_owned(),
            account.locale.as_str().to_owned(),
            serde_json::to_value(account.mail_status)
                .ok()
                .and_then(|v| v.as_str().map(str::to_owned))
                .unwrap_or_default(),
            account.created_at.format("%Y-%m-%d").to_string(),
        ]
    })
}

pub async fn subscriptions(settings: &Settings, command: &Subscriptions) -> Result<ExitCode, Failure> {
    let Opened { table, .. } = &open(settings).await?;
    let (mut found, limit) = (Found::none(), command.limit.limit);
    match &command.account {
        Some(account) => {
            let page = table.get_subscriptions_by_account(account, &Paging { after: None, limit: Some(limit) }).await?;
            if page.is_empty() && table.get_account(account).await?.is_none() {
                return Err(no_account(account));
            }
            found = Found::page(page);
        }
        None => table.scan_subscriptions(|subscription| found.take(subscription, limit)).await?,
    }
    found.show::<SubscriptionView>(settings, "subscription", &SUBSCRIPTION_COLUMNS, subscription_row)
}

/// A subscription in these columns.
pub fn subscription_row(s: &Subscription) -> Vec<String> {
    let ending = s.cancels_on().map(|on| format!("cancelled on {on}"));
    let next = s.next_payment_on.map(|on| on.to_string());
    vec![
        s.id.to_string(),
        s.account.to_string(),
        s.product_name.as_str().to_owned(),
        output::status(&s.status.to_string()),
        s.price.decimal(),
        s.price.currency().to_string(),
        s.due_on.to_string(),
        ending.or(next).unwrap_or_default(),
    ]
}

pub async fn receipts(settings: &Settings, command: &Receipts) -> Result<ExitCode, Failure> {
    let Opened { table, .. } = &open(settings).await?;
    let (account, paging) = (&command.account, Paging { after: None, limit: Some(command.limit.limit) });
    let page = table.get_receipts_by_account(account, &paging, SystemClock.now()).await?;
    if page.is_empty() && table.get_account(account).await?.is_none() {
        return Err(no_account(account));
    }
    Found::page(page).show::<ReceiptView>(settings, "receipt", &RECEIPT_COLUMNS, |receipt: &Receipt| {
        vec![
            receipt.due_on.to_string(),
            receipt.product_name.as_str().to_owned(),
            receipt.amount.decimal(),
            receipt.amount.currency().to_string(),
            receipt.processed_at.format("%Y-%m-%d %H:%M").to_string(),
            receipt.payment.to_string(),
        ]
    })
}
