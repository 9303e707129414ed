//! `dueday import`: subscriptions from another system, put in if they are absent.
//!
//! A subscription's identifier is made of its account and its `external_id`: importing a file again, or going on after
//! an interruption, finds what is there and leaves it as it is.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{NaiveDate, TimeDelta};
use futures::StreamExt;
use futures::stream;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use serde::Serialize;
use shared::billing::{Account, MailStatus, NewSubscription, SubscriptionId};
use shared::clock::Clock;
use shared::config::Config;
use shared::table::{Created, IdempotentRequest, KeptAnswer, TableError};

use crate::arguments::Import;
use crate::commands::import_file::{Read, Rejected, Row, Rows};
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::{Exit, Failure};

/// A row that meets another's write, or a table that does not answer, is tried again this many times.
const MAX_TRIES: u32 = 6;
/// No two imports that overlap take longer than this.
const ONE_OF_AN_IDENTIFIER: TimeDelta = TimeDelta::days(7);

/// What an import came to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Imported {
    pub rows: u64,
    /// Put in; of a dry run, what would be, a row that comes twice counting twice.
    pub created: u64,
    /// Were there already, and are left as they are.
    pub already_there: u64,
    pub rejected: u64,
    /// Where the rejected rows are listed.
    pub rejects: Option<PathBuf>,
    pub dry_run: bool,
}

enum Outcome {
    Created,
    AlreadyThere,
    Rejected(Rejected),
}

struct Importer {
    opened: Opened,
    config: Config,
    today: NaiveDate,
    is_dry_run: bool,
    clock: Arc<dyn Clock>,
}

pub async fn import(context: &Context, command: &Import) -> Result<Exit, Failure> {
    let path = &command.file;
    let wrong = |reason: String| Failure::File { path: path.clone(), reason };
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let rows = Rows::new(BufReader::new(file)).map_err(wrong)?;

    let rejects = Rejects::new(command.rejects.clone().unwrap_or_else(|| beside(path)), path)?;

    context.deployed_as_told()?;
    let opened = Opened::open(context, Folder::MadeIfAbsent).await?;
    tokio::spawn(async {
        // At once, even if it waits for a file that is a pipe: whatever is done is done, the rest is for the next time.
        if tokio::signal::ctrl_c().await.is_ok() {
            output::tell("\ninterrupted; run it again to go on, nothing is doubled");
            Exit::Interrupted.now();
        }
    });
    let importer = Importer {
        opened,
        config: context.config.clone(),
        today: context.today(),
        is_dry_run: command.dry_run,
        clock: context.clock.clone(),
    };
    let template = "{bar:30} {percent}%  {msg}, {eta} left";
    let bar = ProgressBar::new(size)
        .with_style(ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()));
    let imported = importer.import(rows, rejects, &bar).await;
    bar.finish_and_clear();
    let imported = imported?;
    context.print(&imported, || text(&imported))?;
    Ok(Exit::of(imported.rejected == 0))
}

/// `subscriptions.csv` has its rejects in `subscriptions.rejects.csv`.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("rejects.csv")
}

impl Importer {
    /// Imports row by row, several at a time; what is in memory does not grow with the file.
    async fn import(
        &self,
        mut rows: Rows<BufReader<File>>,
        mut rejects: Rejects,
        bar: &ProgressBar,
    ) -> Result<Imported, Failure> {
        let mut imported = Imported { dry_run: self.is_dry_run, ..Imported::default() };
        let read = stream::poll_fn(|_| {
            let next = rows.next_row().transpose();
            bar.set_position(rows.bytes_read());
            std::task::Poll::Ready(next)
        });
        let concurrency = usize::try_from(self.config.concurrency).unwrap_or(1);
        let mut outcomes = read.map(|row| self.row(row)).buffered(concurrency.max(1));
        while let Some(outcome) = outcomes.next().await {
            imported.rows += 1;
            match outcome? {
                Outcome::Created => imported.created += 1,
                Outcome::AlreadyThere => imported.already_there += 1,
                Outcome::Rejected(rejected) => {
                    imported.rejected += 1;
                    rejects.add(&rejected)?;
                }
            }
            bar.set_message(format!("{} rows", HumanCount(imported.rows)));
        }
        imported.rejects = (imported.rejected > 0).then_some(rejects.path);
        Ok(imported)
    }

    async fn row(&self, row: io::Result<Read>) -> Result<Outcome, Failure> {
        let (line, row) = match row? {
            Ok(row) => row,
            Err(rejected) => return Ok(Outcome::Rejected(rejected)),
        };
        let mut tries = 1;
        loop {
            match self.put(line, &row).await {
                Err(error) if error.is_transient() && tries < MAX_TRIES => {
                    // Rows that met do not meet again.
                    let apart = Duration::from_millis(line % 32);
                    self.clock.pause(apart + Duration::from_millis(50) * 2u32.pow(tries)).await;
                    tries += 1;
                }
                Err(error @ TableError::Unreadable { .. }) => {
                    let (field, reason) = ("external_id", format!("it is there already, but {error}"));
                    return Ok(Outcome::Rejected(Rejected { line, field, reason }));
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Creates the subscription of `row`, and its account, unless they are there.
    async fn put(&self, line: u64, row: &Row) -> Result<Outcome, TableError> {
        let table = &self.opened.table;
        let id = row.external_id.subscription_of(&row.account);
        // Whatever its SKU: it is not put in again when that has changed in the file.
        if table.get_subscription(&row.account, id).await?.is_some() {
            return Ok(Outcome::AlreadyThere);
        }
        let new = row.clone().subscription(id);
        let shard = self.opened.settings.shard_of(&row.account);
        let now = self.clock.now();
        let subscription = match new.begin(shard, self.config.policy.lead, self.today, now) {
            Ok(subscription) => subscription,
            Err(refusal) => {
                let (field, reason) = ("first_payment_date", refusal.to_string());
                return Ok(Outcome::Rejected(Rejected { line, field, reason }));
            }
        };
        if self.is_dry_run {
            return Ok(Outcome::Created);
        }
        // Two rows of one identifier, with different SKUs, may get here at the same time: the record admits one of them.
        // Later ones find the subscription itself.
        let once = IdempotentRequest {
            made_at: now,
            key_hash: format!("import-{}-{id}", row.account),
            request_hash: String::new(),
            answer: KeptAnswer::default(),
            expires_at: now + ONE_OF_AN_IDENTIFIER,
        };
        // Most rows are of an account that an earlier one has made.
        let mut created = table.create_subscription(&subscription, Some(&once)).await?;
        if created == Created::NoAccount {
            table.create_account(&row.new_account(now)).await?;
            created = table.create_subscription(&subscription, Some(&once)).await?;
        }
        Ok(match created {
            Created::Created => Outcome::Created,
            _ => Outcome::AlreadyThere,
        })
    }
}

impl Row {
    /// Its subscription, to be known as `id`.
    pub fn subscription(self, id: SubscriptionId) -> NewSubscription {
        NewSubscription {
            account: self.account,
            id,
            sku: self.sku,
            product_name: self.product_name,
            email: None,
            payment_day: self.payment_day,
            price: self.price,
            payment_method: self.payment_method,
            first_payment_on: self.first_payment_on,
        }
    }

    /// The account it is of, as it is created.
    pub fn new_account(&self, now: chrono::DateTime<chrono::Utc>) -> Account {
        Account {
            id: self.account.clone(),
            email: self.email.clone(),
            name: self.name.clone(),
            locale: self.locale.clone(),
            mail_status: MailStatus::default(),
            created_at: now,
            version: 1,
        }
    }
}

/// The list of rejected rows: a file once there are any, or one that an earlier import left.
struct Rejects {
    path: PathBuf,
    file: Option<csv::Writer<File>>,
}

impl Rejects {
    /// The list at `path`, emptied. It must not be `input`.
    fn new(path: PathBuf, input: &Path) -> Result<Self, Failure> {
        let mut rejects = Self { path, file: None };
        if rejects.path.exists() {
            let are_same = rejects.path.canonicalize().ok() == input.canonicalize().ok();
            if are_same {
                return Err(rejects.wrong("is the file to import; list the rejected rows in another one"));
            }
            rejects.begin()?;
        }
        Ok(rejects)
    }

    fn wrong(&self, reason: impl ToString) -> Failure {
        Failure::File { path: self.path.clone(), reason: reason.to_string() }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let mut file =
            csv::WriterBuilder::new().has_headers(false).from_path(&self.path).map_err(|error| self.wrong(error))?;
        file.write_record(["line", "field", "reason"]).map_err(|error| self.wrong(error))?;
        file.flush().map_err(|error| self.wrong(error))?;
        self.file = Some(file);
        Ok(())
    }

    fn add(&mut self, rejected: &Rejected) -> Result<(), Failure> {
        if self.file.is_none() {
            self.begin()?;
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.serialize(rejected).map_err(io::Error::from).and_then(|()| file.flush());
        written.map_err(|error| self.wrong(error))
    }
}

fn text(imported: &Imported) -> String {
    let Imported { rows, created, already_there, rejected, .. } = imported;
    let created_is = if imported.dry_run { "would be created" } else { "created" };
    let grouped = |number: &u64| HumanCount(*number);
    let mut text = format!(
        "{}: {} {created_is}, {} already there, {} rejected\n",
        count(*rows, "row"),
        grouped(created),
        grouped(already_there),
        grouped(rejected)
    );
    if let Some(path) = &imported.rejects {
        text += &format!("rejected rows are listed with line, field and reason in {}\n", path.display());
    }
    text
}
