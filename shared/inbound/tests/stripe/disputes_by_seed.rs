//! Half a year of inquiries, disputes, reversals and other cards, decided by a seed, with events that are late, repeated, out of
//! order and interrupted. What is judged is the stand-in's truth, not its responses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{NaiveDate, TimeDelta};
use clock::Clock as _;
use emulator::{Fault, Injector, Wire};
use gateways::SigningSecrets;
use testkit::nth;

use crate::reversals::{found, found_in_table};
use crate::{SECRET, World};

const DAYS: usize = 180;
const FAULTS: [Fault; 4] = [Fault::LostBefore, Fault::LostAfter, Fault::CrashBefore, Fault::CrashAfter];

/// A small generator of equal numbers for equal seeds (SplitMix64).
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(sides).unwrap()).unwrap()
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }
}

/// What happened over all seeds, so that a play in which nothing happens is noticed.
#[derive(Default, Debug)]
struct Seen {
    charges: usize,
    inquiries: usize,
    waived: usize,
    reversed: usize,
    interrupted: usize,
}

struct Play {
    world: World,
    dice: Dice,
    methods: &'static [&'static str],
    /// The status of each disputed PaymentIntent.
    disputes: BTreeMap<String, &'static str>,
    /// PaymentIntents that the bank took back.
    taken_back: BTreeSet<String>,
    /// Events that are not delivered yet.
    pending: Vec<String>,
    events: usize,
    seen: Seen,
}

/// The statuses that a dispute can have after `status`.
fn after(status: &str) -> &'static [&'static str] {
    match status {
        "warning_needs_response" => &["warning_under_review", "warning_closed", "needs_response"],
        "warning_under_review" => &["warning_closed", "needs_response"],
        "needs_response" => &["under_review", "won", "won", "lost"],
        "under_review" => &["won", "won", "lost"],
        _ => &[],
    }
}

impl Play {
    fn publish(&mut self, kind: &str, of: &str) {
        self.events += 1;
        let event = self.world.server.event(&format!("evt_{}", self.events), kind, of);
        self.pending.push(event);
    }

    /// What customers and banks do on a day.
    fn disturb(&mut self) {
        let intents = self.world.server.intents();
        let is_new = |id: &String| !self.disputes.contains_key(id) && !self.taken_back.contains(id);
        let paid = intents.iter().filter(|intent| intent.status == "succeeded").map(|intent| intent.id.clone());
        let paid: Vec<String> = paid.filter(is_new).collect();
        if !paid.is_empty() && self.dice.roll(15) == 0 {
            let id = paid[self.dice.roll(paid.len())].clone();
            match self.dice.roll(if self.methods[0].starts_with("pm_us") { 4 } else { 2 }) {
                0 => self.dispute(&id, "warning_needs_response"),
                1 => self.dispute(&id, "needs_response"),
                2 => self.dispute(&id, "lost"),
                _ => {
                    self.world.server.fail_after_success(&id, "insufficient_funds");
                    self.publish("payment_intent.payment_failed", &id);
                    self.taken_back.insert(id);
                }
            }
        }
        for (id, status) in self.disputes.clone() {
            let next = after(status);
            if !next.is_empty() && self.dice.roll(40) == 0 {
                let next = self.dice.pick(next);
                self.dispute(&id, next);
            }
        }
    }

    fn dispute(&mut self, id: &str, status: &'static str) {
        let dispute = self.world.server.dispute(id, status);
        self.publish("charge.dispute.updated", &dispute);
        self.disputes.insert(id.to_owned(), status);
        self.seen.inquiries += usize::from(status == "warning_needs_response");
        if status == "lost" {
            self.taken_back.insert(id.to_owned());
        }
    }

    /// Another card, or the same one on purpose.
    async fn act(&mut self) {
        let stored = self.world.stored().await;
        if stored.disputed_at.is_none() || self.dice.roll(50) > 0 {
            return;
        }
        let now = self.world.system.clock.now();
        if self.dice.roll(3) > 0 {
            let method = self.dice.pick(self.methods);
            self.world.change_card(method).await;
            let disputes = self.world.table().get_disputes_by_account(&stored.account).await.unwrap();
            let changed = self.world.stored().await;
            self.world.table().update_subscription(&changed, &changed.disputed_by(&disputes)).await.unwrap();
        } else if let Ok(retried) = stored.retry(true, now.date_naive(), now) {
            self.world.table().update_subscription(&stored, &retried).await.unwrap();
        }
    }

    /// Delivers each pending event with a probability of one half, in any order, sometimes twice, sometimes with a fault.
    async fn deliver(&mut self, is_all: bool) {
        let mut left = Vec::new();
        while !self.pending.is_empty() {
            let place = self.dice.roll(self.pending.len());
            let event = self.pending.swap_remove(place);
            if !is_all && self.dice.roll(2) == 0 {
                left.push(event);
                continue;
            }
            if self.dice.roll(3) == 0 {
                self.interrupt(&event).await;
            }
            if self.world.tell(&event).await.is_err() {
                left.push(event);
            } else if !is_all && self.dice.roll(8) == 0 {
                left.push(event.replace("evt_", "evt_again_"));
            }
        }
        self.pending = left;
    }

    async fn interrupt(&mut self, event: &str) {
        let fault = self.dice.pick(&FAULTS);
        let call = u64::try_from(self.dice.roll(8)).unwrap() + 1;
        let world = &self.world;
        let header = SigningSecrets::parse(SECRET).unwrap().sign(event.as_bytes(), world.system.clock.now());
        let injector = Arc::new(Injector::for_runs(Arc::new(nth(call, fault))));
        let wired = world.system.over(Arc::new(Wire::through(injector.clone()).and_no_retries()));
        let events = World::events(&world.system, wired.table, &world.stripe);
        let _ = injector.run(events.take(&header, event.as_bytes())).await;
        self.seen.interrupted += 1;
    }

    /// The due dates of the payments that the stand-in has made.
    fn charged(&self) -> Vec<String> {
        let made = self.world.server.intents().into_iter().filter(|intent| intent.status == "succeeded");
        made.map(|intent| intent.metadata["dueday_due_date"].clone()).collect()
    }

    async fn day(&mut self, day: NaiveDate, story: &str) {
        let (before, requests) = (self.world.stored().await, self.world.server.intents().len());
        self.world.run(&format!("{day}T06:00:00Z")).await;
        let made = self.world.server.intents().len();
        assert!(before.disputed_at.is_none() || made == requests, "{story}: it was disputed, and charged");
        self.world.system.clock.set(day.and_hms_opt(12, 0, 0).unwrap().and_utc());
        self.disturb();
        let was_pending = !self.pending.is_empty();
        self.deliver(false).await;
        self.act().await;
        // The gateway's lists may be ahead of the events.
        if was_pending || !self.pending.is_empty() {
            assert_eq!(found_in_table(&self.world).await, [] as [&str; 0], "{story}");
        }
        let charged = self.charged();
        let months: BTreeSet<&str> = charged.iter().map(|due_on| &due_on[..7]).collect();
        assert_eq!(months.len(), charged.len(), "{story}: a period was paid twice: {charged:?}");
    }
}

async fn play(seed: u64, methods: &'static [&'static str], settings: &[(&'static str, &str)]) -> Seen {
    let mut play = Play {
        world: World::with(methods[0], settings).await,
        dice: Dice(seed),
        methods,
        disputes: BTreeMap::new(),
        taken_back: BTreeSet::new(),
        pending: Vec::new(),
        events: 0,
        seen: Seen::default(),
    };
    let first: NaiveDate = "2026-03-10".parse().unwrap();
    for day in first.iter_days().take(DAYS) {
        play.day(day, &format!("seed {seed} of {methods:?} on {day}")).await;
    }
    // Attempts that are open are settled, and then every event is delivered.
    let last = first + TimeDelta::days(i64::try_from(DAYS).unwrap());
    for day in last.iter_days().take(4) {
        play.world.run(&format!("{day}T06:00:00Z")).await;
        play.deliver(true).await;
    }
    assert_eq!(play.pending, [] as [&str; 0], "seed {seed}");
    assert_eq!(found(&play.world).await, [] as [&str; 0], "seed {seed}");
    for receipt in play.world.receipts().await {
        let is_taken_back = play.taken_back.contains(receipt.payment.as_str());
        assert_eq!(receipt.reversal.is_some(), is_taken_back, "seed {seed}: {}", receipt.payment);
        play.seen.reversed += usize::from(is_taken_back);
    }
    play.seen.charges = play.charged().len();
    play.seen.waived = play.world.waived().await.iter().filter(|waived| waived.ends_with("disputed")).count();
    play.seen
}

#[tokio::test]
async fn half_a_year_of_disputes_by_seed_keeps_every_period_paid_waived_or_owed() {
    const CARDS: &[&str] = &["pm_card_visa", "pm_card_mastercard", "pm_card_amex"];
    const DEBITS: &[&str] = &["pm_usBankAccount_success", "pm_card_visa"];
    let mut all = Seen::default();
    for seed in 0..8 {
        let methods = if seed % 2 == 0 { CARDS } else { DEBITS };
        let settings: &[(&str, &str)] = match seed % 4 {
            0 | 1 => &[],
            2 => &[("DUEDAY_AFTER_WON_DISPUTE", "charge")],
            _ => &[("DUEDAY_AFTER_WON_DISPUTE", "charge"), ("DUEDAY_CATCH_UP", "latest")],
        };
        let seen = play(seed, methods, settings).await;
        all.charges += seen.charges;
        all.inquiries += seen.inquiries;
        all.waived += seen.waived;
        all.reversed += seen.reversed;
        all.interrupted += seen.interrupted;
    }
    let Seen { charges, inquiries, waived, reversed, interrupted } = all;
    assert!(charges > 20 && inquiries > 5 && waived > 1 && reversed > 5 && interrupted > 10, "{all:?}");
}
