//! What mails and lists say about future payments is what happens: for random histories, the charges of the next three
//! months are compared with the mails, the schedule and the forecast.

use std::collections::BTreeMap;

use billing::{
    AfterLastRetry, AfterWonDispute, CatchUp, ChangeRefusal, OnResume, PaymentMethod, Policy, Settlement, Subscription,
    SubscriptionChanges, SubscriptionStatus,
};
use chrono::{DateTime, Days, NaiveDate, Utc};
use proptest::prelude::*;
use testkit::sample_subscription;

use crate::notices::World;

/// A card that is charged successfully.
const GOOD_CARD: &str = "pm_card_visa";
/// Another card that is charged successfully.
const OTHER_CARD: &str = "pm_card_mastercard";
/// A card that the bank declines for now.
const DECLINED_CARD: &str = "pm_card_visa_chargeDeclinedInsufficientFunds";
/// The number of days for which charges are compared.
const COMPARED_DAYS: u64 = 130;

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// The payment batch runs on each of the next days.
    Run {
        days: u8,
    },
    /// No payment batch runs on the next days.
    Outage {
        days: u8,
    },
    Price(i64),
    PaymentDay(i64),
    Card {
        is_good: bool,
    },
    Pause,
    Resume,
    CancelAtPeriodEnd,
    Uncancel,
    Retry,
    /// The payment method is disputed from now on.
    Dispute,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..40_u8).prop_map(|days| Step::Run { days }),
        1 => (1..70_u8).prop_map(|days| Step::Outage { days }),
        2 => (500..3_000_i64).prop_map(Step::Price),
        3 => (1..=31_i64).prop_map(Step::PaymentDay),
        3 => any::<bool>().prop_map(|is_good| Step::Card { is_good }),
        1 => Just(Step::Pause),
        2 => Just(Step::Resume),
        1 => Just(Step::CancelAtPeriodEnd),
        1 => Just(Step::Uncancel),
        1 => Just(Step::Retry),
        1 => Just(Step::Dispute),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let gaps = prop_oneof![Just("1,2,2,2"), Just("3,5,7"), Just("1")];
    (gaps, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(gaps, cancels, is_latest, waits)| Policy {
        dunning: gaps.parse().unwrap(),
        after_last_retry: if cancels { AfterLastRetry::Cancelled } else { AfterLastRetry::default() },
        after_won_dispute: AfterWonDispute::default(),
        catch_up: if is_latest { CatchUp::Latest } else { CatchUp::Each },
        on_resume: if waits { OnResume::Wait } else { OnResume::Charge },
        ..Policy::default()
    })
}

/// A charge: its date, its due date and its amount in minor units.
type Charge = (NaiveDate, NaiveDate, i64);

/// The history of one subscription.
struct History {
    world: World,
    policy: Policy,
    today: NaiveDate,
}

impl History {
    async fn begin(policy: Policy, payment_day: i64) -> Self {
        let today: NaiveDate = "2026-03-10".parse().unwrap();
        let (gaps, after_last_retry) = (policy.dunning.to_string(), policy.after_last_retry.to_string());
        let (catch_up, on_resume) = (policy.catch_up.to_string(), policy.on_resume.to_string());
        let settings = [
            ("DUEDAY_SHARDS", "1"),
            ("DUEDAY_RETRY_GAPS", &gaps),
            ("DUEDAY_AFTER_LAST_RETRY", &after_last_retry),
            ("DUEDAY_CATCH_UP", &catch_up),
            ("DUEDAY_RESUME", &on_resume),
        ];
        let world = World::with_subscription(sample_subscription(payment_day, today), &settings).await;
        assert_eq!(*world.system.deployment.table.policy(), policy);
        Self { world, policy, today }
    }

    fn now(&self) -> DateTime<Utc> {
        self.today.and_hms_opt(12, 0, 0).unwrap().and_utc()
    }

    async fn stored(&self) -> Subscription {
        let table = &self.world.system.deployment.table;
        table.get_subscription(&self.world.gold.account, self.world.gold.id).await.unwrap().unwrap()
    }

    /// Returns the charges from `since` on, the earliest first.
    async fn charges_since(&self, since: NaiveDate) -> Vec<Charge> {
        let table = &self.world.system.deployment.table;
        let (account, id) = (&self.world.gold.account, self.world.gold.id);
        let records = table.get_payment_records(account, id, self.now()).await.unwrap();
        let charge = |receipt: &billing::Receipt| {
            (self.policy.date_at(receipt.processed_at), receipt.due_on, receipt.amount.minor())
        };
        let mut charges: Vec<Charge> = records.receipts.iter().map(charge).filter(|(on, ..)| *on >= since).collect();
        charges.sort_unstable();
        charges
    }

    /// Returns the due dates from the stored due date on and before `end` that were waived, the earliest first.
    async fn waived_before(&self, from: NaiveDate, end: Option<NaiveDate>) -> Vec<NaiveDate> {
        let table = &self.world.system.deployment.table;
        let (account, id) = (&self.world.gold.account, self.world.gold.id);
        let records = table.get_payment_records(account, id, self.now()).await.unwrap();
        let waived = records.waived.iter().map(|waived| waived.due_on);
        let mut waived: Vec<_> =
            waived.filter(|due_on| *due_on >= from && end.is_some_and(|end| *due_on < end)).collect();
        waived.sort_unstable();
        waived
    }

    /// Stores the result of `change`, and returns the mails about it. If the change is refused, changes nothing.
    async fn change<S: Into<Settlement>>(
        &mut self,
        change: impl Fn(&Subscription) -> Result<S, ChangeRefusal>,
    ) -> Vec<String> {
        let stored = self.stored().await;
        let apply = |stored: &Subscription| change(stored).map(Into::into);
        if let Err(refused) = self.world.system.deployment.table.write_settlement(stored, apply).await {
            refused.into_reason().unwrap();
        }
        self.new_mails().await
    }

    /// Sends the notices of all changes since the last call, and returns their texts.
    async fn new_mails(&mut self) -> Vec<String> {
        let before = self.world.mails().len();
        self.world.system.clock.set(self.now());
        let events = self.world.publish_new_events().await;
        self.world.notify(&events).await;
        self.world.mails().split_off(before).into_iter().map(|(_, text)| text).collect()
    }

    /// Runs the payment batch of `today`, if the subscription is in the payment index.
    async fn run(&mut self) {
        if self.stored().await.next_payment_on.is_none_or(|on| on > self.today) {
            return;
        }
        let now = self.now();
        self.world.system.clock.set(now);
        self.world.charge_due_payments().await;
    }

    /// Takes `step`, and returns the mails about it that describe the present state.
    async fn take(&mut self, step: &Step) -> Vec<String> {
        let (today, now, policy) = (self.today, self.now(), self.policy.clone());
        let lead = policy.lead;
        let changes = |changes: SubscriptionChanges| move |s: &Subscription| s.apply_changes(&changes, lead, today);
        match step {
            Step::Run { days } => {
                for _ in 0..*days {
                    self.run().await;
                    self.today = self.today + Days::new(1);
                }
                self.new_mails().await;
                Vec::new()
            }
            Step::Outage { days } => {
                self.today = self.today + Days::new(u64::from(*days));
                Vec::new()
            }
            Step::Price(minor) => {
                self.change(changes(SubscriptionChanges { amount: Some(*minor), ..SubscriptionChanges::default() }))
                    .await
            }
            Step::PaymentDay(day) => {
                let payment_day = Some((*day).try_into().unwrap());
                self.change(changes(SubscriptionChanges { payment_day, ..SubscriptionChanges::default() })).await
            }
            Step::Card { is_good } => self.give_card(if *is_good { OTHER_CARD } else { DECLINED_CARD }).await,
            Step::Pause => self.change(|s| s.pause(today)).await,
            Step::Resume => self.change(|s| s.resume(policy.on_resume, lead, today, now)).await,
            Step::CancelAtPeriodEnd => self.change(|s| s.cancel_at_period_end(today)).await,
            Step::Uncancel => self.change(|s| s.uncancel(lead, today)).await,
            Step::Retry => self.change(|s| s.retry_owed_payment(true, today, now)).await,
            Step::Dispute => {
                self.change(|s| Ok::<_, ChangeRefusal>(Subscription { disputed_at: Some(now), ..s.clone() })).await
            }
        }
    }

    /// Gives the subscription the payment method `card`.
    async fn give_card(&mut self, card: &str) -> Vec<String> {
        let (today, lead) = (self.today, self.policy.lead);
        let customer = self.world.gold.payment_method.customer.clone();
        let payment_method = Some(PaymentMethod { customer, payment_method: card.parse().unwrap() });
        let changes = SubscriptionChanges { payment_method, ..SubscriptionChanges::default() };
        self.change(|s| s.apply_changes(&changes, lead, today)).await
    }
}

/// The payments that a mail in English announces, and whether it says that nothing else is charged.
#[derive(Debug, Default)]
struct Announcement {
    /// The amount in minor units, the date, and whether the charge may be earlier than this date.
    payments: Vec<(i64, NaiveDate, bool)>,
    is_complete: bool,
}

impl Announcement {
    fn read(mail: &str) -> Self {
        let labels = ["Next payment: ", "Following payment: ", "Outstanding payment: "];
        let payment = |line: &str| {
            let text = labels.iter().find_map(|label| line.trim().strip_prefix(label))?;
            let text = text.split(" (was due on ").next().unwrap();
            let (amount, on, is_latest) = match text.split_once(", charged by ") {
                Some((amount, on)) => (amount, on.strip_suffix(" at the latest").unwrap(), true),
                None => text.split_once(" on ").map(|(amount, on)| (amount, on, false)).unwrap(),
            };
            let minor = amount.trim_start_matches('€').replace(['.', ','], "").parse().unwrap();
            Some((minor, NaiveDate::parse_from_str(on, "%A, %B %d, %Y").unwrap(), is_latest))
        };
        let says = |text: &str| mail.contains(text);
        let is_complete = says("We will not charge you again")
            || says("We will charge only what is listed below")
            || says("We will not charge you for it again")
            || says("We will not charge you while")
            || says("we will not charge you")
            || says("and will not charge you until");
        Self { payments: mail.lines().filter_map(payment).collect(), is_complete }
    }

    /// Asserts that each payment of the mail is one of the `charges`, in this order, and that there are no other charges if
    /// the mail says so.
    fn assert_kept(&self, mail: &str, charges: &[Charge]) {
        let mut following = charges.iter();
        for (minor, on, is_latest) in &self.payments {
            let is_announced = |(charged_on, _, charged): &&Charge| {
                charged == minor && if *is_latest { charged_on <= on } else { charged_on == on }
            };
            assert!(following.any(|charge| is_announced(&charge)), "{charges:?} contradict: {mail}");
        }
        assert!(!self.is_complete || charges.len() == self.payments.len(), "{charges:?} contradict: {mail}");
    }
}

/// Whether the payment run of the day on which something is said is still to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RunOfToday {
    Follows,
    HasEnded,
}

/// Asserts that what is said after `steps` is what happens in the next three months, without further changes.
async fn assert_promises_are_kept(policy: Policy, payment_day: i64, steps: Vec<Step>, run_of_today: RunOfToday) {
    let mut history = History::begin(policy, payment_day).await;
    let mut mails = Vec::new();
    for step in &steps {
        mails = history.take(step).await;
    }
    let stored = history.stored().await;
    // Each payment succeeds from now on. A new card would be an event, so only a card that is declined is replaced, and
    // the mail about the new card is compared instead.
    if stored.payment_method.payment_method.to_string() == DECLINED_CARD {
        mails = history.give_card(GOOD_CARD).await;
    }
    let (today, stored) = (history.today, history.stored().await);
    let first_run_on = if run_of_today == RunOfToday::Follows { today } else { today + Days::new(1) };
    let is_in_view = |on: NaiveDate| on < today + Days::new(COMPARED_DAYS);
    let schedule: Vec<_> = stored
        .planned_payments(&history.policy, first_run_on)
        .take_while(|planned| is_in_view(planned.payment_on))
        .collect();
    let (forecast, _) =
        audit::forecast_charges(&history.world.system.deployment.table, 1, first_run_on, 3).await.unwrap();
    let outlook = stored.outlook(&history.policy, today);
    history.today = first_run_on;
    for _ in 0..COMPARED_DAYS {
        history.run().await;
        history.today = history.today + Days::new(1);
    }
    let charges = history.charges_since(today).await;

    let planned: Vec<Charge> =
        schedule.iter().map(|planned| (planned.payment_on, planned.due_on, planned.amount.minor())).collect();
    assert_eq!(charges, planned, "the schedule is charged: {stored:?}");
    let mut by_day: BTreeMap<NaiveDate, u64> = BTreeMap::new();
    charges
        .iter()
        .filter(|(on, ..)| *on < forecast.first_day_after())
        .for_each(|(on, ..)| *by_day.entry(*on).or_default() += 1);
    let forecast_by_day: BTreeMap<NaiveDate, u64> = forecast.days().map(|(on, day)| (on, day.charges())).collect();
    assert_eq!(by_day, forecast_by_day, "the forecast is charged: {stored:?}");
    let waived = history.waived_before(stored.due_on, schedule.last().map(|last| last.due_on)).await;
    assert_eq!(waived, stored.waived_due_dates(&schedule), "the schedule says what is waived: {stored:?}");
    let after = history.stored().await;
    if let Some(ends_on) = outlook.ends_on {
        assert!(after.status == SubscriptionStatus::Cancelled || ends_on > history.today, "{after:?}");
        let falls_due_after_end = |planned: &&billing::PlannedPayment| planned.due_on >= ends_on;
        assert_eq!(schedule.iter().find(falls_due_after_end), None, "nothing falls due from {ends_on} on");
    }
    if let Some(attempt_on) = outlook.owed.and_then(|owed| owed.payment_on).filter(|_| first_run_on == today) {
        assert_eq!(Some(attempt_on), charges.first().map(|(on, ..)| *on), "the owed payment is charged: {stored:?}");
    }
    for mail in &mails {
        Announcement::read(mail).assert_kept(mail, &charges);
    }
}

/// Returns the default policy, one that charges only the latest month after an outage and waives the last month of a
/// pause, and one that cancels a subscription after the last retry.
fn policies() -> [Policy; 3] {
    [
        Policy::default(),
        Policy { catch_up: CatchUp::Latest, on_resume: OnResume::Wait, ..Policy::default() },
        Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() },
    ]
}

#[tokio::test]
async fn what_is_said_after_typical_changes_is_what_is_charged() {
    let declined = || Step::Card { is_good: false };
    for (payment_day, steps) in [
        (31, vec![Step::PaymentDay(5)]),
        (31, vec![Step::Price(1_499), Step::PaymentDay(5)]),
        // Past due, with the payment of March, and unpaid, with the payments of March to May.
        (15, vec![declined(), Step::Run { days: 7 }]),
        (15, vec![declined(), Step::Run { days: 7 }, Step::CancelAtPeriodEnd]),
        (15, vec![declined(), Step::Run { days: 80 }]),
        (15, vec![declined(), Step::Run { days: 80 }, Step::Price(2_400)]),
        // An outage over two payment days, and the end of a period in which a payment is owed.
        (15, vec![Step::Outage { days: 60 }]),
        // Changes on the day before a payment falls due.
        (15, vec![Step::Outage { days: 66 }, Step::Price(1_999)]),
        (15, vec![declined(), Step::Run { days: 35 }, Step::Card { is_good: true }]),
        (15, vec![Step::Outage { days: 60 }, Step::CancelAtPeriodEnd]),
        (15, vec![Step::Outage { days: 60 }, Step::PaymentDay(28)]),
        (15, vec![Step::Pause, Step::Run { days: 3 }]),
        (15, vec![Step::Pause, Step::Run { days: 50 }, Step::Resume]),
        (15, vec![Step::Run { days: 10 }, Step::Dispute, Step::Price(2_400)]),
        (15, vec![Step::Run { days: 10 }, Step::Dispute, Step::Run { days: 40 }, Step::Card { is_good: true }]),
        (15, vec![Step::Run { days: 10 }, Step::CancelAtPeriodEnd, Step::Run { days: 3 }, Step::Uncancel]),
    ] {
        for policy in policies() {
            for run_of_today in [RunOfToday::Follows, RunOfToday::HasEnded] {
                Box::pin(assert_promises_are_kept(policy.clone(), payment_day, steps.clone(), run_of_today)).await;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn what_is_said_about_payments_is_what_is_charged(
        policy in any_policy(),
        payment_day in 1..=31_i64,
        steps in prop::collection::vec(any_step(), 0..8),
        run_of_today in prop_oneof![Just(RunOfToday::Follows), Just(RunOfToday::HasEnded)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Box::pin(assert_promises_are_kept(policy, payment_day, steps, run_of_today)));
    }
}
