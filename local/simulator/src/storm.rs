//! Days in trouble: runs that may end anywhere, days without a run or without the gateway, and customers in between.

use std::ops::ControlFlow;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use emulator::Deployment;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use shared::billing::{AccountId, Subscription, SubscriptionId};
use shared::config::Config;
use shared::gateway::Entry;
use shared::table::Table;

use crate::books::Books;
use crate::check::{Finding, check_always};
use crate::customers::{self, Act};
use crate::oracle::{self, Begun, Evidence};
use crate::play::Play;
use crate::trouble::{Odds, Trouble};
use crate::{SimulationError, Troubles};

/// On one day in so many an outage begins.
const OUTAGE_ONE_IN: u32 = 45;

/// Who is away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Away {
    Us,
    Gateway,
}

/// Trouble, customers, and all they did.
pub struct Storm {
    pub trouble: Arc<Trouble>,
    dice: ChaCha8Rng,
    seed: u64,
    everyone: Vec<(AccountId, SubscriptionId)>,
    begun: Vec<Begun>,
    acts: Vec<Act>,
    outage: Option<(Away, u32)>,
    outage_days: usize,
}

impl Storm {
    /// Trouble ahead for all who are in `table`.
    pub async fn gather(table: &Table, odds: Odds) -> Result<Self, SimulationError> {
        let mut all = Vec::new();
        let each = |subscription| {
            all.push(subscription);
            ControlFlow::Continue(())
        };
        table.scan_subscriptions(each).await?;
        let all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
        let begun = |s: &Subscription| Begun {
            who: (s.account.to_string(), s.id.to_string()),
            day: u8::from(s.payment_day).into(),
            due: s.due_on,
            price: s.price.minor(),
            card: s.payment_method.payment_method.to_string(),
        };
        Ok(Self {
            trouble: Trouble::new(odds),
            dice: ChaCha8Rng::seed_from_u64(!odds.seed),
            seed: odds.seed,
            begun: all.iter().map(begun).collect(),
            everyone: all.into_iter().map(|s| (s.account, s.id)).collect(),
            acts: Vec::new(),
            outage: None,
            outage_days: 0,
        })
    }

    /// Plays one day.
    pub async fn day(&mut self, day: NaiveDate, play: &mut Play, calm: &Deployment) -> Result<(), SimulationError> {
        self.begin_outage();
        let away = self.outage.map(|(away, _)| away);
        self.trouble.take_gateway_away(away == Some(Away::Gateway));
        for time in play.times(day) {
            let moment = (time - TimeDelta::hours(1), day, calm.config.policy.lead);
            customers::act(&calm.table, &self.everyone, moment, &mut self.dice, &mut self.acts).await?;
            if away != Some(Away::Us) {
                self.run(day, time, play).await;
            }
        }
        self.trouble.take_gateway_away(false);
        Ok(())
    }

    /// Both batches, until they come to their end or the dice end them. What they answer is not asked: the records and
    /// the ledger tell.
    async fn run(&self, day: NaiveDate, time: DateTime<Utc>, play: &mut Play) {
        self.trouble.brew(true);
        tokio::select! {
            biased;
            () = self.trouble.end_of_run() => {}
            _ = play.both(day, time) => {}
        }
        self.trouble.brew(false);
    }

    fn begin_outage(&mut self) {
        self.outage = self.outage.and_then(|(away, days)| Some((away, days.checked_sub(1).filter(|left| *left > 0)?)));
        if self.outage.is_none() && self.dice.random_ratio(1, OUTAGE_ONE_IN) {
            let away = if self.dice.random() { Away::Us } else { Away::Gateway };
            // Now and then one outlasts a month.
            let days = if self.dice.random_ratio(1, 12) { 40 } else { self.dice.random_range(1..=6) };
            self.outage = Some((away, days));
        }
        self.outage_days += usize::from(self.outage.is_some());
    }

    /// Checks all of it, after the days without trouble from `calm_from` to `as_of`.
    pub fn check(
        &self,
        books: &Books,
        ledger: &[Entry],
        config: &Config,
        (calm_from, as_of): (NaiveDate, NaiveDate),
    ) -> Vec<Finding> {
        let mut findings = check_always(books);
        let (policy, zone) = (&config.policy, config.zone);
        findings.push(oracle::check(&Evidence {
            begun: &self.begun,
            acts: &self.acts,
            ledger,
            books,
            policy,
            zone,
            calm_from,
            as_of,
        }));
        findings
    }

    /// What trouble there was.
    pub fn troubles(&self) -> Troubles {
        let (faults, crashes) = self.trouble.counts();
        Troubles { seed: self.seed, faults, crashes, outage_days: self.outage_days, acts: self.acts.len() }
    }
}
