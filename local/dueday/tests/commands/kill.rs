//! `kill -9` of real processes: payment runs on the engine's file, which charge through a gateway in a process of its
//! own. After every kill the table is held against the gateway's ledger.

use crate::gateway;
use crate::process;
use crate::terminal;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use billing::{Account, PaymentMethod, Subscription, SubscriptionId};
use chrono::{Datelike, NaiveDate, TimeDelta};
use clock::{Clock, SimulatedClock, SystemClock};
use emulator::{Deployment, Engine, Wire};
use gateway::Gateway;
use gateways::{Entry, HttpGateway};
use payments::GATEWAY_TIMEOUT;
use process::Process;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use simulator::{Books, Invariant, Who, check};
use store::Created;
use sweep::BatchRequest;
use terminal::{dueday, output};
use testkit::{Letterbox, config, sample};

const KILLS: u64 = 100;
/// At least so many must fall between a charge and its settlement.
const KILLS_BETWEEN: u64 = 20;
/// So many can be charged when a run begins: more than it charges by the time the kill arrives.
const PAYABLE: usize = 80;
/// The variable with another seed than the usual one.
const SEED: &str = "DUEDAY_KILL_SEED";

/// When a run is killed, as a seed decides.
struct Moment {
    /// After so many further lines of the ledger,
    lines: usize,
    /// and so many further looks at it.
    looks: u64,
    concurrency: u64,
    /// The gateway is killed just before.
    kills_gateway: bool,
}

impl Moment {
    fn next(dice: &mut ChaCha8Rng) -> Self {
        Self {
            lines: dice.random_range(1..=10),
            looks: dice.random_range(0..200),
            concurrency: dice.random_range(1..=8),
            kills_gateway: dice.random_ratio(1, 10),
        }
    }
}

/// A run of the payments of `day` through `gateway`, as it is at `moment`.
fn run_until(moment: &Moment, folder: &Path, gateway: &Gateway, day: NaiveDate) -> Process {
    let mut ledger = File::open(folder.join("gateway-ledger.jsonl")).unwrap();
    ledger.seek(SeekFrom::End(0)).unwrap();
    let mut run = Process::start(
        dueday(folder)
            .args(["run", "payments", "--date", &day.to_string(), "--gateway", &gateway.url])
            .args(["--gateway-rate", "10000", "--concurrency", &moment.concurrency.to_string()])
            // That it cannot reach a gateway which was killed before it is not worth telling.
            .env("RUST_LOG", "off")
            .stdout(Stdio::null()),
    );
    let (mut written, mut looks) = (Vec::new(), 0);
    while looks <= moment.looks {
        let has_ended = run.has_ended();
        ledger.read_to_end(&mut written).unwrap();
        if written.iter().filter(|byte| **byte == b'\n').count() >= moment.lines {
            looks += 1;
        } else {
            assert!(!has_ended, "a run has ended before it was to be killed");
        }
        std::thread::yield_now();
    }
    run
}

/// What the processes have written to the data folder. The engine's file is read while none of them works on it.
struct Files {
    folder: PathBuf,
    deployment: Deployment,
}

impl Files {
    /// The files of `folder`, as a deployment that charges through `gateway`.
    async fn open(folder: &Path, gateway: &Gateway, clock: Arc<SimulatedClock>) -> Self {
        let engine = Engine::open(&folder.join("dynamodb.sqlite")).unwrap();
        let client = engine.client_over(Arc::new(Wire::without_tokens()));
        let gateway = HttpGateway::new(&gateway.url, GATEWAY_TIMEOUT.to_std().unwrap()).on_clock(clock.clone());
        let config = config(&[("DUEDAY_SHARDS", "2")]).unwrap();
        let mailer = Arc::new(Letterbox::default());
        let deployment = Deployment::new(client, config, Arc::new(gateway), mailer, clock).ready().await.unwrap();
        Self { folder: folder.to_owned(), deployment }
    }

    async fn books(&self) -> Books {
        let ledger = std::fs::read_to_string(self.folder.join("gateway-ledger.jsonl")).unwrap();
        // A line that the gateway is writing is not there yet.
        let whole = ledger.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let entries: Vec<Entry> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
        Books::read(&self.deployment.table, &entries).await.unwrap()
    }

    /// The books, and then as many new subscriptions due on `day`, two an account, as make enough that can be charged.
    async fn books_and_more(&self, day: NaiveDate) -> Books {
        let table = &self.deployment.table;
        let settings = table.get_settings().await.unwrap().unwrap();
        let books = self.books().await;
        let payable = books.subscriptions.iter().filter(|s| !s.has_attempt && s.due == day).count();
        for n in (books.subscriptions.len()..).take(PAYABLE.saturating_sub(payable)) {
            let account = Account { id: format!("account-{}", n / 2).parse().unwrap(), ..sample::account() };
            table.put_account(&account).await.unwrap();
            let due = sample::subscription(day.day().into(), day - TimeDelta::days(1));
            let (id, shard) = (SubscriptionId::new(SystemClock.ulid()), settings.shard_of(&account.id));
            let customer = format!("cus_{}", n / 2).parse().unwrap();
            let payment_method = PaymentMethod { customer, ..due.payment_method };
            let subscription = Subscription { account: account.id, id, shard, payment_method, ..due };
            assert_eq!(table.create_subscription(&subscription, None).await.unwrap(), Created::Created);
        }
        books
    }
}

fn open(books: &Books) -> BTreeSet<&Who> {
    books.subscriptions.iter().filter(|s| s.has_attempt).map(|s| &s.who).collect()
}

/// Those whose charge is in the ledger and whose receipt is not in the table.
fn unsettled(books: &Books) -> BTreeSet<&Who> {
    let receipts: BTreeSet<_> = books.receipts.iter().map(|receipt| &receipt.payment).collect();
    books.charges.iter().filter(|charge| !receipts.contains(&charge.payment)).map(|charge| &charge.who).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn run_payments_charges_everyone_once_although_killed_a_hundred_times() {
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().unwrap());
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    println!("{SEED}={seed} repeats these decisions");
    let folder = tempfile::tempdir().unwrap();
    let today = SystemClock.now().date_naive();
    let yesterday = today - TimeDelta::days(1);
    let mut gateway = Gateway::start(folder.path());
    let (mut runs, mut kills, mut kills_between) = (0, 0, 0);
    let open_files =
        async |gateway: &Gateway, now| Files::open(folder.path(), gateway, Arc::new(SimulatedClock::new(now, 0))).await;
    let mut before = open_files(&gateway, SystemClock.now()).await.books_and_more(yesterday).await;
    while kills < KILLS {
        // One that came to its end before the kill arrived was not killed.
        assert!(runs < 2 * KILLS, "{kills} of {runs} runs were killed");
        let moment = Moment::next(&mut dice);
        let mut run = run_until(&moment, folder.path(), &gateway, today);
        let was_killed = if moment.kills_gateway {
            drop(gateway);
            let was_killed = run.kill();
            gateway = Gateway::start(folder.path());
            was_killed
        } else {
            run.kill()
        };
        let after = open_files(&gateway, SystemClock.now()).await.books_and_more(yesterday).await;
        assert!(unsettled(&after).is_subset(&open(&after)), "charged, and neither settled nor open");
        // What an earlier run left open may have been charged since, by a request that was still under way.
        let is_between = unsettled(&after).difference(&open(&before)).next().is_some();
        (runs, kills) = (runs + 1, kills + u64::from(was_killed));
        kills_between += u64::from(was_killed && is_between);
        before = after;
    }
    println!("{kills_between} of {kills} kills fell between charge and settlement");
    assert!(kills_between >= KILLS_BETWEEN, "too few kills fell between charge and settlement");

    // An hour later every lease has lapsed: one sweep settles what was left open.
    let later = SystemClock.now() + TimeDelta::hours(1);
    let files = open_files(&gateway, later).await;
    let payments = files.deployment.payments().await.unwrap();
    let report = payments.run(&BatchRequest::on(today), later + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");

    let settled = files.books().await;
    let broken: Vec<_> = check(&settled, today).into_iter().filter(|finding| !finding.holds()).collect();
    // The killed runs left their records open, and that is what the checker says of them.
    assert!(broken.iter().all(|finding| finding.invariant == Invariant::RunsEnded), "{broken:?}");
    let everyone = settled.subscriptions.len();
    assert_eq!((settled.charges.len(), settled.receipts.len()), (everyone, everyone));
    assert!(open(&settled).is_empty() && settled.subscriptions.iter().all(|s| s.due > today));
    let arguments = ["runs", "payments", "--date", &today.to_string(), "--json", "--gateway", &gateway.url];
    let (code, stdout, stderr) = output(dueday(folder.path()).args(arguments));
    let day: Value = serde_json::from_str(&stdout).unwrap_or_default();
    // The last run walked all of it: what was cut short before no longer matters.
    assert_eq!((code, &day["shards"][0]["walked"]), (0, &"complete".into()), "{stdout}{stderr}");
    assert!(day["shards"][0]["runs"].as_u64() > Some(KILLS), "{stdout}");
}
