//! `dueday due`: what a sweep of a day would find, now or ahead.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use chrono::NaiveDate;
use serde::Serialize;
use shared::ambient::{self, Ambient};
use shared::billing::{Currency, Money};
use shared::table::{DuePage, Position, Table, TableError};

use crate::Failure;
use crate::arguments::{Due, Settings};
use crate::data::System;
use crate::output::{self, count};

/// Rows read at once.
const PAGE_ROWS: i32 = 1_000;
/// Rows shown of each list; `--json` shows all.
const ROWS_SHOWN: usize = 50;

#[derive(Serialize)]
struct Listed {
    account: String,
    subscription: String,
    sku: String,
    product_name: String,
    due_date: NaiveDate,
    on: NaiveDate,
    #[serde(flatten)]
    amount: Money,
}

#[derive(Serialize)]
struct Lists {
    date: NaiveDate,
    payments: Vec<Listed>,
    reminders: Vec<Listed>,
    unreadable: Vec<String>,
}

pub async fn due(settings: &Settings, command: &Due) -> Result<ExitCode, Failure> {
    let clock: Arc<dyn Ambient> = Arc::new(ambient::System);
    let system = System::open(settings, clock.clone()).await?;
    let date = command.date.unwrap_or_else(|| clock.now().with_timezone(&system.config.zone).date_naive());
    let mut lists = Lists { date, payments: Vec::new(), reminders: Vec::new(), unreadable: Vec::new() };
    let shards = system.table.get_settings().await?.map_or(0, |settings| settings.shards);
    for shard in 0..shards {
        lists.read(true, &system.table, shard).await?;
        lists.read(false, &system.table, shard).await?;
    }
    lists.payments.sort_by(|a, b| (a.on, &a.account, &a.subscription).cmp(&(b.on, &b.account, &b.subscription)));
    lists.reminders.sort_by(|a, b| (a.on, &a.account, &a.subscription).cmp(&(b.on, &b.account, &b.subscription)));
    if settings.json {
        output::json(&lists);
    } else {
        print_list("payment", "payment on", &lists.payments, date);
        println!();
        print_list("reminder", "reminder on", &lists.reminders, date);
    }
    for key in &lists.unreadable {
        eprintln!("unreadable: {key}");
    }
    Ok(if lists.unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Lists {
    async fn read(&mut self, is_payments: bool, table: &Table, shard: u32) -> Result<(), TableError> {
        let mut after: Option<Position> = None;
        loop {
            let DuePage { rows, is_last } = if is_payments {
                table.get_due_payments_by_date(shard, self.date, after.as_ref(), PAGE_ROWS).await?
            } else {
                table.get_due_reminders_by_date(shard, self.date, after.as_ref(), PAGE_ROWS).await?
            };
            for row in rows {
                after = Some(row.position);
                match row.due {
                    Err(error) => self.unreadable.push(error.to_string()),
                    Ok(due) => {
                        let list = if is_payments { &mut self.payments } else { &mut self.reminders };
                        list.push(Listed {
                            account: due.of.account.to_string(),
                            subscription: due.of.subscription.to_string(),
                            sku: due.of.sku.to_string(),
                            product_name: due.product_name.as_str().to_owned(),
                            due_date: due.due_on,
                            on: due.on,
                            amount: due.amount,
                        });
                    }
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }
}

fn print_list(noun: &str, on: &str, rows: &[Listed], date: NaiveDate) {
    println!("{} due on or before {date}", count(rows.len(), noun));
    if rows.is_empty() {
        return;
    }
    let shown = rows.iter().take(ROWS_SHOWN).map(|row| {
        let (amount, currency) = (row.amount.decimal(), row.amount.currency().to_string());
        vec![
            row.on.to_string(),
            row.due_date.to_string(),
            row.account.clone(),
            row.product_name.clone(),
            amount,
            currency,
        ]
    });
    println!("{}", output::columns(&[on, "due date", "account", "product", "amount", ""], shown, &[4]));
    if rows.len() > ROWS_SHOWN {
        println!("and {} more (--json shows all)", rows.len() - ROWS_SHOWN);
    }
    let sums: Vec<String> = sums(rows.iter().map(|row| row.amount)).values().map(Money::to_string).collect();
    println!("in all {}", sums.join(", "));
}

/// The sum of amounts, by currency. A sum too large to hold is left at the largest amount.
pub fn sums(amounts: impl Iterator<Item = Money>) -> BTreeMap<Currency, Money> {
    let mut sums = BTreeMap::new();
    for amount in amounts {
        let sum = sums.entry(amount.currency()).or_insert_with(|| Money::new(0, amount.currency()));
        *sum = sum.checked_add(amount).unwrap_or(Money::new(i64::MAX, amount.currency()));
    }
    sums
}
