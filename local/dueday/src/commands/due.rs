//! `dueday due`: what a sweep of a day would find, now or ahead.

use billing::{Money, Sums};
use chrono::NaiveDate;
use clap::Args;
use indicatif::HumanCount;
use serde::Serialize;
use store::{Batch, Due, DueList};

use super::values;
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

/// Rows read at once.
const PAGE_ROWS: usize = 1_000;
/// Rows shown of each list; `--json` shows all.
const ROWS_SHOWN: usize = 50;

const COLUMNS: [Column; 6] = [
    Column::whole("on"),
    Column::whole("due date"),
    Column::text("account"),
    Column::text("product"),
    Column::number("amount"),
    Column::whole(""),
];

/// `dueday due`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dueday due\n  dueday due --date 2027-01-31 --json --table dueday")]
pub struct DueArgs {
    /// The day of the sweep; today if absent; `dueday forecast` looks ahead
    #[arg(long, value_name = "DATE", value_parser = values::date)]
    pub date: Option<NaiveDate>,
}

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

/// What one batch would find.
#[derive(Default, Serialize)]
struct DueRows {
    count: u64,
    sums: Sums,
    rows: Vec<Listed>,
    unreadable: Vec<String>,
}

#[derive(Serialize)]
struct Lists {
    date: NaiveDate,
    payments: DueRows,
    reminders: DueRows,
}

impl From<Due> for Listed {
    fn from(due: Due) -> Self {
        Self {
            account: due.key.account.to_string(),
            subscription: due.key.subscription.to_string(),
            sku: due.key.sku.to_string(),
            product_name: due.product_name.as_str().to_owned(),
            due_date: due.due_on,
            on: due.on,
            amount: due.amount,
        }
    }
}

pub async fn due(context: &Context, args: &DueArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let date = args.date.unwrap_or_else(|| context.today());
    let rows_kept = if context.options.json { usize::MAX } else { ROWS_SHOWN };
    let lists = Lists {
        date,
        payments: DueRows::read(&opened, Batch::Payments, date, rows_kept).await?,
        reminders: DueRows::read(&opened, Batch::Reminders, date, rows_kept).await?,
    };
    context.print(&lists, || {
        format!("{}\n{}", lists.payments.text("payment", date), lists.reminders.text("reminder", date))
    })?;
    let unreadable: Vec<_> = lists.payments.unreadable.iter().chain(&lists.reminders.unreadable).collect();
    for entry in &unreadable {
        output::tell(format!("unreadable: {entry}"));
    }
    Ok(Exit::of(unreadable.is_empty()))
}

impl DueRows {
    /// Reads all of it, and keeps the first `rows_kept` rows.
    async fn read(opened: &Opened, batch: Batch, date: NaiveDate, rows_kept: usize) -> Result<Self, Failure> {
        let (mut list, mut after) = (Self::default(), None);
        loop {
            let shards = opened.settings.shards;
            let DueList { rows, next } = opened.table.get_due_by_date(batch, shards, date, after, PAGE_ROWS).await?;
            for row in rows {
                match row.due {
                    Err(error) => list.unreadable.push(error.to_string()),
                    // Nothing will be charged of it.
                    Ok(due) if !due.will_be_charged() => {}
                    Ok(due) => {
                        list.count += 1;
                        list.sums.add(due.amount);
                        list.rows.push(due.into());
                    }
                }
            }
            if list.rows.len() > rows_kept {
                list.sort();
                list.rows.truncate(rows_kept);
            }
            after = next;
            if after.is_none() {
                break;
            }
        }
        list.sort();
        Ok(list)
    }

    /// Each shard has its own order.
    fn sort(&mut self) {
        self.rows.sort_by(|a, b| (a.on, &a.account, &a.subscription).cmp(&(b.on, &b.account, &b.subscription)));
    }

    fn text(&self, noun: &str, date: NaiveDate) -> String {
        let mut text = format!("{} due on or before {date}\n", count(self.count, noun));
        if self.rows.is_empty() {
            return text;
        }
        let rows = self.rows.iter().map(|row| {
            vec![
                row.on.to_string(),
                row.due_date.to_string(),
                row.account.clone(),
                row.product_name.clone(),
                row.amount.decimal(),
                row.amount.currency().to_string(),
            ]
        });
        text += &table(&COLUMNS, rows);
        let more = self.count.saturating_sub(u64::try_from(self.rows.len()).unwrap_or(u64::MAX));
        if more > 0 {
            text += &format!("and {} more (--json shows all)\n", HumanCount(more));
        }
        text + &format!("in all {}\n", self.sums)
    }
}
