//! What a day brings: its runs, and who does what when.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;
use emulator::runs_on;
use rand::Rng as _;
use rand::seq::IndexedRandom as _;
use rand_chacha::ChaCha8Rng;

use crate::oracle::{Act, Agreement};
use crate::played_gateway::Event;
use crate::stored::StoredStatus;

/// On one day of so many a customer acts.
const ACTS_ONE_IN: u32 = 25;
/// On one day of so many an outage begins.
const OUTAGE_ONE_IN: u32 = 45;
/// On one day of so many charging is switched off, shards are added, somebody subscribes.
const SWITCH_ONE_IN: u32 = 60;
const SHARDS_ONE_IN: u32 = 90;
const SUBSCRIBES_ONE_IN: u32 = 30;
const MAX_SHARDS: u32 = 4;

/// Good ones more often than others.
const CARDS: [&str; 11] = [
    "pm_card_visa",
    "pm_card_mastercard",
    "pm_card_amex",
    "pm_card_jcb",
    "pm_card_visa_debit",
    "pm_usBankAccount_success",
    "pm_usBankAccount_insufficientFunds",
    "pm_card_visa_chargeDeclined",
    "pm_card_visa_chargeDeclinedInsufficientFunds",
    "pm_card_visa_chargeDeclinedLostCard",
    // The gateway knows no such card, and rejects every charge.
    "pm_card_unknown",
];

/// Something that is to begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Plan {
    Payments(NaiveDate),
    Reminders(NaiveDate),
    /// Somebody asks for something; of whom and what is decided then.
    Request,
    Create,
    Resolve,
    Event(Event),
    Charging(bool),
    Shards(u32),
}

/// Whose outage it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Away {
    Us,
    Gateway,
}

/// What goes on for longer than a day.
#[derive(Debug)]
pub struct Times {
    pub shards: u32,
    outage: Option<(Away, u32)>,
    pub outage_days: u32,
}

impl Times {
    pub fn new(shards: u32) -> Self {
        Self { shards, outage: None, outage_days: 0 }
    }

    /// Whose outage this day is in.
    pub fn away(&mut self, rng: &mut ChaCha8Rng) -> Option<Away> {
        self.outage = self.outage.and_then(|(away, days)| Some((away, days.checked_sub(1).filter(|left| *left > 0)?)));
        if self.outage.is_none() && rng.random_ratio(1, OUTAGE_ONE_IN) {
            let away = if rng.random() { Away::Us } else { Away::Gateway };
            // Now and then one outlasts a month.
            let days = if rng.random_ratio(1, 12) { 40 } else { rng.random_range(1..=5) };
            self.outage = Some((away, days));
        }
        self.outage_days += u32::from(self.outage.is_some());
        self.outage.map(|(away, _)| away)
    }

    /// What a day in trouble brings.
    pub fn plan(
        &mut self,
        day: NaiveDate,
        zone: Tz,
        people: u32,
        away: Option<Away>,
        rng: &mut ChaCha8Rng,
    ) -> Vec<(DateTime<Utc>, Plan)> {
        let mut plans = Vec::new();
        let runs = times(day, zone);
        let after = |time: DateTime<Utc>, minutes: i64, rng: &mut ChaCha8Rng| {
            time + TimeDelta::seconds(rng.random_range(0..=minutes * 60))
        };
        if away != Some(Away::Us) {
            for (time, is_second) in runs.into_iter().zip([false, true]) {
                // The second run of a day is not always started.
                if is_second && rng.random() {
                    continue;
                }
                // Started twice, or again by hand.
                let again =
                    |rng: &mut ChaCha8Rng| 1 + u32::from(rng.random_ratio(1, 5)) - u32::from(rng.random_ratio(1, 6));
                for _ in 0..again(rng) {
                    plans.push((after(time, 6, rng), Plan::Reminders(day)));
                }
                for _ in 0..again(rng) {
                    // A date that was missed may be asked for later.
                    let date = if rng.random_ratio(1, 30) { day - Days::new(rng.random_range(1..4)) } else { day };
                    plans.push((after(time, 10, rng), Plan::Payments(date)));
                }
                // Leases lapse meanwhile.
                if rng.random_ratio(1, 10) {
                    plans.push((after(time + TimeDelta::minutes(20), 50, rng), Plan::Payments(day)));
                }
            }
        }
        if away != Some(Away::Us) && rng.random_ratio(1, 12) {
            // Started by hand, and goes on past midnight.
            let late = runs[0] + TimeDelta::minutes(17 * 60 + 40);
            plans.push((after(late, 19, rng), Plan::Payments(day)));
            plans.push((after(late, 19, rng), Plan::Reminders(day)));
        }
        for _ in 0..people {
            if rng.random_ratio(1, ACTS_ONE_IN) {
                let is_near = rng.random_ratio(1, 2);
                let at =
                    if is_near { after(runs[0] - TimeDelta::minutes(3), 20, rng) } else { any_time(day, zone, rng) };
                plans.push((at, Plan::Request));
            }
        }
        if rng.random_ratio(1, SUBSCRIBES_ONE_IN) {
            plans.push((any_time(day, zone, rng), Plan::Create));
        }
        if rng.random_ratio(1, 2) {
            plans.push((after(runs[1] + TimeDelta::hours(2), 90, rng), Plan::Resolve));
        }
        if rng.random_ratio(1, SWITCH_ONE_IN) {
            plans.push((after(runs[0], 8, rng), Plan::Charging(false)));
            plans.push((after(runs[1] - TimeDelta::hours(1), 120, rng), Plan::Charging(true)));
        }
        if self.shards < MAX_SHARDS && rng.random_ratio(1, SHARDS_ONE_IN) {
            self.shards += 1;
            plans.push((after(runs[0], 8, rng), Plan::Shards(self.shards)));
        }
        plans
    }

    /// What a calm day brings.
    pub fn calm(day: NaiveDate, zone: Tz) -> Vec<(DateTime<Utc>, Plan)> {
        let both = |time| [(time, Plan::Reminders(day)), (time + TimeDelta::minutes(20), Plan::Payments(day))];
        times(day, zone).into_iter().flat_map(both).collect()
    }
}

/// The instants of the runs of a day.
fn times(day: NaiveDate, zone: Tz) -> [DateTime<Utc>; 2] {
    runs_on(day, NaiveTime::from_hms_opt(6, 0, 0).unwrap_or_default(), zone)
}

fn any_time(day: NaiveDate, zone: Tz, rng: &mut ChaCha8Rng) -> DateTime<Utc> {
    let six = times(day, zone)[0];
    six + TimeDelta::minutes(rng.random_range(-300..=900))
}

/// What the subscriber of `agreement` may want, sensible or not.
pub fn act_of(agreement: &Agreement, rng: &mut ChaCha8Rng) -> Act {
    let card = |rng: &mut ChaCha8Rng| Act::Card(CARDS.choose(rng).copied().unwrap_or("pm_card_visa").to_owned());
    match agreement.status {
        StoredStatus::Paused if rng.random_ratio(3, 4) => Act::Resume,
        StoredStatus::Unpaid | StoredStatus::PastDue if rng.random_ratio(3, 4) => card(rng),
        _ if agreement.ends.is_some() && rng.random_ratio(1, 2) => Act::Keep,
        _ => match rng.random_range(0..100) {
            0..2 => Act::Cancel,
            2..9 => Act::End,
            9..13 => Act::Keep,
            13..35 => Act::Pause,
            35..40 => Act::Resume,
            40..60 => card(rng),
            60..80 => Act::Price(rng.random_range(1..50) * 100),
            _ => Act::Day(rng.random_range(1..=31)),
        },
    }
}
