//! Months in trouble: seed after seed, until one shows that something is wrong.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use simulator::{Enrolment, GatewayKind, Played, Setting, play_seeds};

use super::{SimulateArgs, lines};
use crate::context::Context;
use crate::terminal::output;
use crate::{Exit, Failure};

/// What all plays came to.
#[derive(Debug, Default, Serialize)]
struct Plays {
    seeds: usize,
    first_seed: u64,
    subscription_years: u64,
    writes: u64,
    charges: u64,
    mails: u64,
    requests: u64,
    refused: u64,
    events: usize,
    faults: u64,
    outage_days: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    late_payments: Option<LatePayments>,
    wrong: Vec<Wrong>,
}

/// Payments that Stripe made hours after it had responded with an error.
#[derive(Debug, Default, Serialize)]
struct LatePayments {
    made: u64,
    /// Made after the month had been charged by a later attempt, so that no look-up could find them in time.
    after_another_charge: u64,
    /// Without a receipt: findings for a person.
    findings: u64,
}

/// A seed that shows what is wrong.
#[derive(Debug, Serialize)]
struct Wrong {
    seed: u64,
    what: Vec<String>,
}

pub fn simulate(
    context: &Context,
    args: &SimulateArgs,
    enrolments: Vec<Enrolment>,
    faults: f64,
) -> Result<Exit, Failure> {
    let config = context.config.clone();
    let gateway = if args.stripe { GatewayKind::Stripe } else { GatewayKind::Sandbox };
    let setting = Setting { config, enrolments, from: args.from, months: args.months, faults, gateway };
    let first = args.seed.unwrap_or_else(rand::random);
    let count = match (args.time, args.seeds) {
        (Some(_), _) => u64::MAX,
        (None, seeds) => seeds.map_or(1, u64::from),
    };
    let style = ProgressStyle::with_template("{spinner} {pos} seeds, {msg}, {elapsed}");
    let bar = ProgressBar::new_spinner().with_style(style.unwrap_or(ProgressStyle::default_spinner()));
    let began = Instant::now();
    let goes_on = || args.time.is_none_or(|time| began.elapsed() < time);
    let on_play = |played: &Played| {
        bar.inc(1);
        bar.set_message(format!("the last {}", played.seed));
    };
    let played = play_seeds(&setting, (first, count), goes_on, on_play)?;
    bar.finish_and_clear();
    let plays = Plays::of(first, args.stripe, played);
    context.print(&plays, || plays.text())?;
    for wrong in &plays.wrong {
        output::tell(format!("To see it again, give it --seed {} and the rest as before.", wrong.seed));
    }
    Ok(Exit::of(plays.wrong.is_empty()))
}

impl Plays {
    fn of(first_seed: u64, is_stripe: bool, all: Vec<Played>) -> Self {
        let late_payments = is_stripe.then(LatePayments::default);
        let mut plays = Self { seeds: all.len(), first_seed, late_payments, ..Self::default() };
        let days: u64 = all.iter().map(|played| played.subscription_days).sum();
        plays.subscription_years = days / 365;
        for played in all {
            plays.writes += played.judged.writes;
            plays.charges += played.judged.charges;
            plays.mails += played.judged.mails;
            plays.requests += played.judged.done + played.judged.refused;
            plays.refused += played.judged.refused;
            plays.events += played.events;
            plays.faults += played.faults;
            plays.outage_days += u64::from(played.outage_days);
            if let Some(late) = &mut plays.late_payments {
                late.made += played.judged.repaired;
                late.after_another_charge += played.judged.too_late;
                late.findings += played.judged.found;
            }
            if !played.wrong.is_empty() {
                plays.wrong.push(Wrong { seed: played.seed, what: played.wrong });
            }
        }
        plays
    }

    fn text(&self) -> String {
        let mut text = lines([
            ("seeds", format!("{}, from {}", self.seeds, self.first_seed)),
            ("played", format!("{} years of a subscription", self.subscription_years)),
            ("writes", self.writes.to_string()),
            ("charges", self.charges.to_string()),
            ("reminders", self.mails.to_string()),
            ("requests", format!("{}, of which {} were refused", self.requests, self.refused)),
            ("events", self.events.to_string()),
            ("faults", self.faults.to_string()),
            ("outages", format!("{} days", self.outage_days)),
        ]);
        if let Some(LatePayments { made, after_another_charge, findings }) = &self.late_payments {
            let late =
                format!("{made}, of which {after_another_charge} followed another charge, {findings} are findings");
            text += &lines([("late payments", late)]);
        }
        text += if self.wrong.is_empty() { "\nNothing was wrong.\n" } else { "\n" };
        for Wrong { seed, what } in &self.wrong {
            text += &format!("WRONG with seed {seed}\n");
            what.iter().for_each(|what| text += &format!("          {what}\n"));
        }
        text
    }
}
