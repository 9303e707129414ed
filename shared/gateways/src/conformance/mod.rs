//! Checks whether a gateway keeps the promises that the protocol relies on (`docs/gateways.md`), for authors of adapters.
//!
//! A check makes real payments and refunds at the gateway, so it belongs in the gateway's test mode. It removes nothing.

mod case;
mod charges;
mod keys;
mod later;
mod lists;
mod refunds;
mod web_page;

use std::collections::BTreeSet;
use std::time::Duration;

use ulid::Ulid;

use super::Processor;
use billing::{Currency, GatewayToken};
use case::{Case, Outcome};
use clock::Timer;

/// When a check looks for late payments for the first time.
const SOON: Duration = Duration::from_secs(15);

/// What a gateway in test mode has for checks.
#[derive(Clone, Debug)]
pub struct Sample {
    pub customer: GatewayToken,
    /// A second customer, whose payments must not be confused with those of the first.
    pub other_customer: GatewayToken,
    /// A payment method whose charges succeed at once.
    pub succeeds: GatewayToken,
    /// A payment method whose charges are declined at once.
    pub declines: GatewayToken,
    /// A payment method whose charges stay in progress, such as a bank debit; absent if the gateway has none.
    pub processes: Option<GatewayToken>,
    pub currency: Currency,
    /// The id of this check, in the names of all its payments: payments of earlier checks are left out.
    pub run: Ulid,
    /// How long to wait before the list, the keys and the declines are checked again.
    pub wait: Duration,
}

/// A promise, and whether the gateway keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    pub promise: &'static str,
    pub verdict: Verdict,
}

/// Whether a gateway keeps a promise.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Kept,
    /// It breaks the promise, in this way.
    Broken(String),
    /// It could not be checked, for this reason.
    NotChecked(String),
}

/// How far a long step of a check is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub step: Step,
    pub done: u64,
    pub of: u64,
}

/// A step of a check that takes long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Makes payments, counted one by one.
    Charging,
    /// Waits, counted in seconds.
    Waiting,
}

/// What a check reports to while it runs.
pub trait Observer {
    /// Reports one result.
    fn checked(&self, checked: &Checked);

    /// Reports how far a long step is.
    fn progress(&self, progress: &Progress);
}

/// What a check found, and what it leaves behind at the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub checked: Vec<Checked>,
    /// The payments that the gateway returned or listed, of any status.
    pub payment_ids: BTreeSet<GatewayToken>,
    /// How many refunds the gateway confirmed.
    pub refunds: usize,
}

impl Report {
    /// Returns how many promises are broken.
    pub fn broken(&self) -> usize {
        self.checked.iter().filter(|checked| matches!(checked.verdict, Verdict::Broken(_))).count()
    }

    /// Returns how many promises were not checked.
    pub fn not_checked(&self) -> usize {
        self.checked.iter().filter(|checked| matches!(checked.verdict, Verdict::NotChecked(_))).count()
    }
}

/// Checks every promise of `gateway`, in order. Waits on `timer` and reports to `observer`.
pub async fn check(gateway: &dyn Processor, sample: &Sample, timer: &dyn Timer, observer: &dyn Observer) -> Report {
    let case = Case::new(gateway, sample, timer, observer);
    let mut all = Vec::new();
    let mut report = |promise, outcome: Outcome| {
        let checked = Checked { promise, verdict: outcome.err().unwrap_or(Verdict::Kept) };
        observer.checked(&checked);
        all.push(checked);
    };
    report("the account is named, and is the same each time", case.account().await);
    report("a successful charge has the names, the amount and the currency of its request", case.succeeds().await);
    report("the same request again is the same payment", case.again().await);
    report("keys that differ only in their last character are different payments", case.similar_keys().await);
    report(
        "the same request, sent several times at once, is one payment, and no response denies it",
        case.same_at_once().await,
    );
    report("different requests of one customer, sent at once, are one payment each", case.different_at_once().await);
    report("a key that was used for another request makes nothing, whatever differs", case.key_reused().await);
    report("a decline is final, and is the same when the request is sent again", case.declines().await);
    report("a request that cannot be carried out is rejected, and makes nothing", case.rejects().await);
    report("amounts are charged exactly, in currencies of none and of three decimals", case.decimals().await);
    report("a payment that the bank has not confirmed is in the list", case.processes().await);
    report("the list has every payment once, on all pages, as it was made", case.lists().await);
    report("keys are known after more than a hundred other requests", case.keys_are_known().await);
    report("the list has every payment since an instant, recent or long ago", case.lists_since().await);
    report("the list of one customer has no payment of another", case.customers().await);
    report("a part of a payment is refunded once under one name", case.refunds().await);
    report("no more is refunded than was paid", case.refunds_too_much().await);
    report("the list has refunded payments, with the amounts that were paid", case.lists_refunded().await);
    report("one payment is read by its id, and an unknown id is none", case.reads_one().await);
    report(
        "a web page is opened once for one setup, and is open until a payment method is given",
        case.web_page().await,
    );
    // Most late payments show within seconds, so their author need not wait for the rest.
    let waited = case.wait(SOON).await;
    report(
        "some seconds later, nothing is paid that was declined, rejected or refused",
        after(&waited, case.stays_unpaid()).await,
    );
    let waited = case.wait(sample.wait).await;
    report(
        "after the wait, nothing is paid that was declined, rejected or refused",
        after(&waited, case.stays_unpaid()).await,
    );
    report("after the wait, the list has every payment as it was made", after(&waited, case.list_stays()).await);
    report("after the wait, the same requests are the same payments", after(&waited, case.keys_are_known()).await);
    let (payment_ids, refunds) = case.left_behind();
    Report { checked: all, payment_ids, refunds }
}

/// Checks only if the check `waited`.
async fn after(waited: &Outcome, check: impl Future<Output = Outcome>) -> Outcome {
    waited.clone()?;
    check.await
}
