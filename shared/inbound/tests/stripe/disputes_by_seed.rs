//! A random simulation of half a year with inquiries, disputes, reversals and changed cards. The seed determines every
//! random decision. Events are late, repeated, out of order and interrupted. The test compares the table with the
//! internal state of the stand-in for Stripe, not with the responses that the stand-in returned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use clock::Clock as _;
use emulator::{EngineConnection, Fault, FaultInjector};
use gateways::SigningSecrets;
use testkit::fault_at_call;
use tokio::task::JoinSet;

use crate::reversals::{violations, violations_in_table};
use crate::{SECRET, World};

/// The number of simulated days.
const SIMULATED_DAYS: usize = 180;
/// The faults that can interrupt the handling of an event.
const FAULTS: [Fault; 4] = [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter];

/// A small deterministic random number generator (SplitMix64).
struct Dice(u64);

impl Dice {
    /// Returns a random number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    /// Returns a random element of `from`.
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }
}

/// How often each kind of action happened, in all simulations together. The test fails if a kind of action happened too
/// rarely.
#[derive(Default, Debug)]
struct Occurrences {
    charges: usize,
    inquiries: usize,
    waived: usize,
    reversed: usize,
    interrupted: usize,
}

/// A simulation of one subscription, whose random decisions depend only on the seed of `dice`.
struct Simulation {
    world: World,
    dice: Dice,
    /// The payment methods that the customer can use.
    methods: &'static [&'static str],
    /// The status of each disputed PaymentIntent.
    disputes: BTreeMap<String, &'static str>,
    /// The PaymentIntents that the bank has reversed.
    reversed_intents: BTreeSet<String>,
    /// The events that are not delivered yet.
    pending: Vec<String>,
    /// The number of events that were created. The id of each event contains its number.
    events: usize,
    seen: Occurrences,
}

/// Returns the statuses that a dispute can have after `status`.
fn next_statuses(status: &str) -> &'static [&'static str] {
    match status {
        "warning_needs_response" => &["warning_under_review", "warning_closed", "needs_response"],
        "warning_under_review" => &["warning_closed", "needs_response"],
        "needs_response" => &["under_review", "won", "won", "lost"],
        "under_review" => &["won", "won", "lost"],
        _ => &[],
    }
}

impl Simulation {
    /// Creates an event of the type `kind` about the object `of`, and adds the event to the pending events.
    fn queue_event(&mut self, kind: &str, of: &str) {
        self.events += 1;
        let event = self.world.server.event_body(&format!("evt_{}", self.events), kind, of);
        self.pending.push(event);
    }

    /// Performs the random actions of customers and banks on one day.
    fn act_as_customers_and_banks(&mut self) {
        let intents = self.world.server.intents();
        let is_new = |id: &String| !self.disputes.contains_key(id) && !self.reversed_intents.contains(id);
        let paid = intents.iter().filter(|intent| intent.status == "succeeded").map(|intent| intent.id.clone());
        let paid: Vec<String> = paid.filter(is_new).collect();
        if !paid.is_empty() && self.dice.roll(15) == 0 {
            let id = paid[self.dice.roll(paid.len())].clone();
            match self.dice.roll(if self.methods[0].starts_with("pm_us") { 4 } else { 2 }) {
                0 => self.set_dispute_status(&id, "warning_needs_response"),
                1 => self.set_dispute_status(&id, "needs_response"),
                2 => self.set_dispute_status(&id, "lost"),
                _ => {
                    self.world.server.fail_debit_after_success(&id, "insufficient_funds");
                    self.queue_event("payment_intent.payment_failed", &id);
                    self.reversed_intents.insert(id);
                }
            }
        }
        for (id, status) in self.disputes.clone() {
            let next = next_statuses(status);
            if !next.is_empty() && self.dice.roll(40) == 0 {
                let next = self.dice.pick(next);
                self.set_dispute_status(&id, next);
            }
        }
    }

    /// Sets the status of the dispute of the PaymentIntent `id`, and queues the event about this change. Opens the
    /// dispute if there is none.
    fn set_dispute_status(&mut self, id: &str, status: &'static str) {
        let dispute = self.world.server.set_dispute_status(id, status);
        self.queue_event("charge.dispute.updated", &dispute);
        self.disputes.insert(id.to_owned(), status);
        self.seen.inquiries += usize::from(status == "warning_needs_response");
        if status == "lost" {
            self.reversed_intents.insert(id.to_owned());
        }
    }

    /// If the payment method is disputed, sometimes changes the payment method, or requests a retry with the disputed
    /// payment method.
    async fn change_card_or_retry(&mut self) {
        let stored = self.world.stored_subscription().await;
        if stored.disputed_at.is_none() || self.dice.roll(50) > 0 {
            return;
        }
        let now = self.world.system.clock.now();
        if self.dice.roll(3) > 0 {
            let method = self.dice.pick(self.methods);
            self.world.change_card(method).await;
            let disputes = self.world.table().get_disputes_by_account(&stored.account).await.unwrap();
            let changed = self.world.stored_subscription().await;
            self.world.table().update_subscription(&changed, &changed.with_dispute_mark(&disputes)).await.unwrap();
        } else if let Ok(retried) = stored.retry_owed_payment(true, now.date_naive(), now) {
            self.world.table().update_subscription(&stored, &retried).await.unwrap();
        }
    }

    /// Delivers each pending event with a probability of one half, or all pending events if `is_all` is true. Delivers
    /// the events in random order, sometimes twice, and sometimes with a fault.
    async fn deliver_events(&mut self, is_all: bool) {
        let mut left = Vec::new();
        while !self.pending.is_empty() {
            let index = self.dice.roll(self.pending.len());
            let event = self.pending.swap_remove(index);
            if !is_all && self.dice.roll(2) == 0 {
                left.push(event);
                continue;
            }
            if self.dice.roll(3) == 0 {
                self.handle_with_fault(&event).await;
            }
            if self.world.send_event(&event).await.is_err() {
                left.push(event);
            } else if !is_all && self.dice.roll(8) == 0 {
                left.push(event.replace("evt_", "evt_again_"));
            }
        }
        self.pending = left;
    }

    /// Handles `event` with a random fault at a random outgoing call, and ignores the result.
    async fn handle_with_fault(&mut self, event: &str) {
        let fault = self.dice.pick(&FAULTS);
        let call = u64::try_from(self.dice.roll(8)).unwrap() + 1;
        let world = &self.world;
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), world.system.clock.now());
        let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(fault_at_call(call, fault))));
        let deployment =
            world.system.with_connection(Arc::new(EngineConnection::with_injector(injector.clone()).without_retries()));
        let events = World::event_handler(&world.system, deployment.table, &world.stripe);
        let _ = injector.run(events.handle(&header, event.as_bytes())).await;
        self.seen.interrupted += 1;
    }

    /// Returns the due dates of the payments that the stand-in has made.
    fn charged_due_dates(&self) -> Vec<String> {
        let made = self.world.server.intents().into_iter().filter(|intent| intent.status == "succeeded");
        made.map(|intent| intent.metadata["dueday_due_date"].clone()).collect()
    }

    /// Simulates `day`: runs the payment batch, lets customers and banks act, and delivers events. Then checks the
    /// table. `story` describes the simulation in error messages.
    async fn simulate_day(&mut self, day: NaiveDate, story: &str) {
        let (before, requests) = (self.world.stored_subscription().await, self.world.server.intents().len());
        self.world.run_payments(&format!("{day}T06:00:00Z")).await;
        let made = self.world.server.intents().len();
        assert!(before.disputed_at.is_none() || made == requests, "{story}: a disputed payment method was charged");
        self.world.system.clock.set(day.and_hms_opt(12, 0, 0).unwrap().and_utc());
        self.act_as_customers_and_banks();
        let was_pending = !self.pending.is_empty();
        self.deliver_events(false).await;
        self.change_card_or_retry().await;
        // While events are pending, the gateway's lists may be newer than the table. Then check only the table, without
        // the gateway's lists.
        if was_pending || !self.pending.is_empty() {
            assert_eq!(violations_in_table(&self.world).await, [] as [&str; 0], "{story}");
        }
        let charged = self.charged_due_dates();
        let months: BTreeSet<&str> = charged.iter().map(|due_on| &due_on[..7]).collect();
        assert_eq!(months.len(), charged.len(), "{story}: a period was paid twice: {charged:?}");
    }
}

/// Runs one simulation with the payment methods `methods` and the environment variables `settings`. Returns how often
/// each kind of action happened.
async fn simulate_half_a_year(
    seed: u64,
    methods: &'static [&'static str],
    settings: &'static [(&'static str, &'static str)],
) -> Occurrences {
    let mut simulation = Simulation {
        world: World::with_settings(methods[0], settings).await,
        dice: Dice(seed),
        methods,
        disputes: BTreeMap::new(),
        reversed_intents: BTreeSet::new(),
        pending: Vec::new(),
        events: 0,
        seen: Occurrences::default(),
    };
    let first: NaiveDate = "2026-03-10".parse().unwrap();
    for day in first.iter_days().take(SIMULATED_DAYS) {
        simulation.simulate_day(day, &format!("seed {seed} of {methods:?} on {day}")).await;
    }
    // Settle the open attempts, and then deliver every event.
    let last = first + TimeDelta::days(i64::try_from(SIMULATED_DAYS).unwrap());
    for day in last.iter_days().take(4) {
        simulation.world.run_payments(&format!("{day}T06:00:00Z")).await;
        simulation.deliver_events(true).await;
    }
    assert_eq!(simulation.pending, [] as [&str; 0], "seed {seed}");
    assert_eq!(violations(&simulation.world).await, [] as [&str; 0], "seed {seed}");
    for receipt in simulation.world.receipts().await {
        let is_reversed = simulation.reversed_intents.contains(receipt.payment.as_str());
        assert_eq!(receipt.reversal.is_some(), is_reversed, "seed {seed}: {}", receipt.payment);
        simulation.seen.reversed += usize::from(is_reversed);
    }
    simulation.seen.charges = simulation.charged_due_dates().len();
    simulation.seen.waived =
        simulation.world.waived_periods().await.iter().filter(|waived| waived.ends_with("disputed")).count();
    simulation.seen
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_year_of_disputes_by_seed_keeps_every_period_paid_waived_or_owed() {
    const CARDS: &[&str] = &["pm_card_visa", "pm_card_mastercard", "pm_card_amex"];
    const DEBITS: &[&str] = &["pm_usBankAccount_success", "pm_card_visa"];
    let mut simulations = JoinSet::new();
    for seed in 0..8 {
        let methods = if seed % 2 == 0 { CARDS } else { DEBITS };
        let settings: &[(&str, &str)] = match seed % 4 {
            0 | 1 => &[],
            2 => &[("DUEDAY_AFTER_WON_DISPUTE", "charge")],
            _ => &[("DUEDAY_AFTER_WON_DISPUTE", "charge"), ("DUEDAY_CATCH_UP", "latest")],
        };
        simulations.spawn(simulate_half_a_year(seed, methods, settings));
    }
    let mut all = Occurrences::default();
    for seen in simulations.join_all().await {
        all.charges += seen.charges;
        all.inquiries += seen.inquiries;
        all.waived += seen.waived;
        all.reversed += seen.reversed;
        all.interrupted += seen.interrupted;
    }
    let Occurrences { charges, inquiries, waived, reversed, interrupted } = all;
    assert!(charges > 20 && inquiries > 5 && waived > 1 && reversed > 5 && interrupted > 10, "{all:?}");
}
