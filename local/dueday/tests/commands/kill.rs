//! A test that kills `dueday run payments` processes with SIGKILL. These processes use the database file, and charge
//! through a gateway in another process. After every kill, the test compares the table with the gateway's ledger.

use crate::gateway;
use crate::process;
use crate::terminal;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use billing::{Account, PaymentMethod, Subscription, SubscriptionId};
use charging::GATEWAY_TIMEOUT;
use chrono::{Datelike, NaiveDate, TimeDelta};
use clock::{Clock, SimulatedClock, SystemClock};
use deployment::Deployment;
use emulator::{Engine, EngineConnection};
use gateway::Gateway;
use gateways::HttpGateway;
use process::{Process, count_lines};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use sandbox::LedgerEntry;
use serde_json::Value;
use simulator::{Invariant, SubscriptionName, TableContents, check_invariants};
use store::CreateOutcome;
use sweep::BatchRequest;
use terminal::{dueday, output};
use testkit::{RecordedMails, read_test_config, sample_account, sample_subscription, short_or_long};

/// The number of subscriptions that can be charged at the start of a run. A run is killed before it has charged all of
/// them.
const PAYABLE_SUBSCRIPTIONS: usize = 80;
/// The environment variable that overrides the seed of the random kills.
const SEED_VARIABLE: &str = "DUEDAY_KILL_SEED";

/// The random time at which a run is killed, and the random conditions of the run.
struct RandomKill {
    /// The number of new lines in the gateway's ledger before the kill.
    lines: usize,
    /// How often the test checks whether the run has ended, after these lines appeared and before it kills the run.
    extra_checks: u64,
    /// The `--concurrency` of the run.
    concurrency: u64,
    /// Whether the gateway is killed just before the run is killed.
    kills_gateway: bool,
}

impl RandomKill {
    /// Chooses a random time and random conditions with `dice`.
    fn random(dice: &mut ChaCha8Rng) -> Self {
        Self {
            lines: dice.random_range(1..=10),
            extra_checks: dice.random_range(0..200),
            concurrency: dice.random_range(1..=8),
            kills_gateway: dice.random_ratio(1, 10),
        }
    }
}

/// Starts a payment run for `day` through `gateway`, and waits until the run must be killed. Returns the process, which
/// the caller kills.
fn run_until(moment: &RandomKill, folder: &Path, gateway: &Gateway, day: NaiveDate) -> Process {
    let ledger = folder.join("gateway-ledger.jsonl");
    let written_before = std::fs::metadata(&ledger).unwrap().len();
    let mut run = Process::start(
        dueday(folder)
            .args(["run", "payments", "--date", &day.to_string(), "--gateway", &gateway.url])
            .args(["--gateway-rate", "10000", "--concurrency", &moment.concurrency.to_string()])
            // Do not log that the killed gateway cannot be reached.
            .env("RUST_LOG", "off")
            .stdout(Stdio::piped()),
    );
    let is_time = run.wait_for_file(&ledger, written_before, |added| count_lines(added) >= moment.lines);
    assert!(is_time, "a run ended before the kill");
    (0..moment.extra_checks).for_each(|_| {
        run.has_ended();
    });
    run
}

/// The files in the data folder. The database file is only read while no other process uses it.
struct MachineFiles {
    folder: PathBuf,
    deployment: Deployment,
}

impl MachineFiles {
    /// Opens the files of `folder` as a deployment that charges through `gateway`.
    async fn open(folder: &Path, gateway: &Gateway, clock: Arc<SimulatedClock>) -> Self {
        let engine = Engine::open(&folder.join("dynamodb.sqlite")).unwrap();
        let client = engine.client_with_connection(Arc::new(EngineConnection::without_tokens()));
        let gateway = HttpGateway::new(&gateway.url, GATEWAY_TIMEOUT).with_clock(clock.clone());
        let config = read_test_config(&[("DUEDAY_SHARDS", "2")]).unwrap();
        let mailer = Arc::new(RecordedMails::default());
        let deployment =
            Deployment::new(client, config, Arc::new(gateway), mailer, clock).create_table_if_absent().await.unwrap();
        Self { folder: folder.to_owned(), deployment }
    }

    /// Returns the contents of the table and the complete lines of the gateway's ledger.
    async fn read_contents(&self) -> TableContents {
        let ledger = std::fs::read_to_string(self.folder.join("gateway-ledger.jsonl")).unwrap();
        // Ignore a line that the gateway is still writing.
        let whole = ledger.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let entries: Vec<LedgerEntry> = whole.map(|line| serde_json::from_str(line).unwrap()).collect();
        TableContents::read(&self.deployment.table, &entries).await.unwrap()
    }

    /// Reads the contents, and then creates subscriptions that are due on `day`, two for each account, until
    /// `PAYABLE_SUBSCRIPTIONS` subscriptions can be charged. Returns the contents without the new subscriptions.
    async fn read_contents_and_add_subscriptions(&self, day: NaiveDate) -> TableContents {
        let table = &self.deployment.table;
        let settings = table.get_settings().await.unwrap().unwrap();
        let contents = self.read_contents().await;
        let payable = contents.subscriptions.iter().filter(|s| !s.has_open_attempt && s.due == day).count();
        for n in (contents.subscriptions.len()..).take(PAYABLE_SUBSCRIPTIONS.saturating_sub(payable)) {
            let account = Account { id: format!("account-{}", n / 2).parse().unwrap(), ..sample_account() };
            table.put_account(&account).await.unwrap();
            let due = sample_subscription(day.day().into(), day - TimeDelta::days(1));
            let (id, shard) = (SubscriptionId::new(SystemClock.ulid()), settings.shard_of(&account.id));
            let customer = format!("cus_{}", n / 2).parse().unwrap();
            let payment_method = PaymentMethod { customer, ..due.payment_method };
            let subscription = Subscription { account: account.id, id, shard, payment_method, ..due };
            assert_eq!(table.create_subscription(&subscription, None).await.unwrap(), CreateOutcome::Created);
        }
        contents
    }
}

/// Returns the subscriptions with an open attempt.
fn subscriptions_with_open_attempt(contents: &TableContents) -> BTreeSet<&SubscriptionName> {
    contents.subscriptions.iter().filter(|s| s.has_open_attempt).map(|s| &s.name).collect()
}

/// Returns the subscriptions that have a charge in the ledger without a receipt in the table.
fn subscriptions_with_unsettled_charge(contents: &TableContents) -> BTreeSet<&SubscriptionName> {
    let receipts: BTreeSet<_> = contents.receipts.iter().map(|receipt| &receipt.payment).collect();
    contents
        .charges
        .iter()
        .filter(|charge| !receipts.contains(&charge.payment))
        .map(|charge| &charge.subscription)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn run_payments_charges_everyone_once_although_killed_repeatedly() {
    // The number of killed runs, and the minimum number of kills after a charge at the gateway and before its receipt
    // is written.
    let (all_kills, min_kills_before_receipt) = short_or_long((25, 5), (100, 20));
    let seed = std::env::var(SEED_VARIABLE).map_or(1, |seed| seed.parse().unwrap());
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    println!("set {SEED_VARIABLE}={seed} to repeat these kills");
    let folder = tempfile::tempdir().unwrap();
    let today = SystemClock.now().date_naive();
    let yesterday = today - TimeDelta::days(1);
    let mut gateway = Gateway::start(folder.path());
    let (mut runs, mut kills, mut kills_between) = (0, 0, 0);
    let open_files = async |gateway: &Gateway, now| {
        MachineFiles::open(folder.path(), gateway, Arc::new(SimulatedClock::new(now, 0))).await
    };
    let mut before = open_files(&gateway, SystemClock.now()).await.read_contents_and_add_subscriptions(yesterday).await;
    while kills < all_kills {
        // A run that ended before the kill does not count.
        assert!(runs < 2 * all_kills, "only {kills} of {runs} runs were killed");
        let moment = RandomKill::random(&mut dice);
        let mut run = run_until(&moment, folder.path(), &gateway, today);
        let was_killed = if moment.kills_gateway {
            drop(gateway);
            let was_killed = run.kill();
            gateway = Gateway::start(folder.path());
            was_killed
        } else {
            run.kill()
        };
        let after = open_files(&gateway, SystemClock.now()).await.read_contents_and_add_subscriptions(yesterday).await;
        assert!(
            subscriptions_with_unsettled_charge(&after).is_subset(&subscriptions_with_open_attempt(&after)),
            "a subscription is charged, but has neither a receipt nor an open attempt"
        );
        // Count only attempts that were not open before this run. The gateway may process a charge request of an
        // earlier run during this run, and so charge an older attempt.
        let is_between = subscriptions_with_unsettled_charge(&after)
            .difference(&subscriptions_with_open_attempt(&before))
            .next()
            .is_some();
        (runs, kills) = (runs + 1, kills + u64::from(was_killed));
        kills_between += u64::from(was_killed && is_between);
        before = after;
    }
    println!("{kills_between} of {kills} kills happened between charge and settlement");
    assert!(kills_between >= min_kills_before_receipt, "too few kills happened between charge and settlement");

    // An hour later every lease has expired: one run settles all open attempts.
    let later = SystemClock.now() + TimeDelta::hours(1);
    let files = open_files(&gateway, later).await;
    let payments = files.deployment.payment_batch().await.unwrap();
    let report = payments.run(&BatchRequest::for_date(today), later + TimeDelta::hours(1)).await.unwrap();
    assert!(report.complete && report.adds_up(), "{report:?}");

    let settled = files.read_contents().await;
    let broken: Vec<_> = check_invariants(&settled, today).into_iter().filter(|finding| !finding.holds()).collect();
    // The only violations that the checker reports are the run records without an end, which the killed runs left.
    assert!(broken.iter().all(|finding| finding.invariant == Invariant::RunsEnded), "{broken:?}");
    let all = settled.subscriptions.len();
    assert_eq!((settled.charges.len(), settled.receipts.len()), (all, all));
    assert!(
        subscriptions_with_open_attempt(&settled).is_empty() && settled.subscriptions.iter().all(|s| s.due > today)
    );
    let arguments = ["runs", "payments", "--date", &today.to_string(), "--json", "--gateway", &gateway.url];
    let (code, stdout, stderr) = output(dueday(folder.path()).args(arguments));
    let day: Value = serde_json::from_str(&stdout).unwrap_or_default();
    // The last run processed the whole shard, so the shard counts as complete although earlier runs were killed.
    assert_eq!((code, &day["shards"][0]["walked"]), (0, &"complete".into()), "{stdout}{stderr}");
    assert!(day["shards"][0]["runs"].as_u64() > Some(all_kills), "{stdout}");
}
