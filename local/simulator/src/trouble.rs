//! Days in trouble: faults that may end a run anywhere, outages of the gateway or of our own, and customers who act
//! between the runs.

use std::ops::ControlFlow;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use emulator::{Deployment, Faulty, InMemory, Injector, Wire};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;
use shared::billing::{AccountId, Subscription, SubscriptionId};
use shared::config::Config;
use shared::gateway::Entry;
use shared::table::Table;

use crate::SimulationError;
use crate::books::Books;
use crate::checker::check_always;
use crate::customers::{self, CustomerAct};
use crate::daily_runs::DailyRuns;
use crate::invariant::Finding;
use crate::oracle::{self, Begun, Evidence};
use crate::random_faults::{Odds, RandomFaults};
use crate::simulation::Timespan;

/// On one day of so many an outage begins.
const OUTAGE_ONE_IN: u32 = 45;

/// Whose outage it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Away {
    Us,
    Gateway,
}

/// What trouble there was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TroubleSummary {
    pub seed: u64,
    /// Requests that were lost, refused, or the last of their run.
    pub faults: u64,
    /// Runs that a fault ended.
    pub crashes: u64,
    /// Days without a run, or without the gateway.
    pub outage_days: usize,
    /// What customers did.
    pub acts: usize,
}

/// Faults, outages, customers, and what they came to so far.
pub struct Trouble {
    faults: Arc<RandomFaults>,
    injector: Arc<Injector>,
    crashes: u64,
    rng: ChaCha8Rng,
    seed: u64,
    everyone: Vec<(AccountId, SubscriptionId)>,
    begun: Vec<Begun>,
    acts: Vec<CustomerAct>,
    outage: Option<(Away, u32)>,
    outage_days: usize,
}

impl Trouble {
    /// Trouble for all subscriptions of `table`.
    pub async fn new(table: &Table, odds: Odds) -> Result<Self, SimulationError> {
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
        let faults = Arc::new(RandomFaults::new(odds));
        Ok(Self {
            injector: Arc::new(Injector::for_runs(faults.clone())),
            faults,
            crashes: 0,
            rng: ChaCha8Rng::seed_from_u64(!odds.seed),
            seed: odds.seed,
            begun: all.iter().map(begun).collect(),
            everyone: all.into_iter().map(|s| (s.account, s.id)).collect(),
            acts: Vec::new(),
            outage: None,
            outage_days: 0,
        })
    }

    /// `system` with this trouble on the ways to its table, its gateway and its mailer.
    pub fn disturb(&self, system: &InMemory) -> Deployment {
        let calm = &system.deployment;
        let wire = Wire::through(self.injector.clone()).and_no_tokens();
        let has_retries = self.faults.rng().random();
        let wire = if has_retries { wire } else { wire.and_no_retries() };
        Deployment {
            gateway: Arc::new(Faulty::new(calm.gateway.clone(), self.injector.clone())),
            mailer: Arc::new(Faulty::new(calm.mailer.clone(), self.injector.clone())),
            ..system.over(Arc::new(wire))
        }
    }

    /// One day of `runs`, whose records and customers are reached through `calm`.
    pub async fn day(
        &mut self,
        day: NaiveDate,
        runs: &mut DailyRuns,
        calm: &Deployment,
    ) -> Result<(), SimulationError> {
        self.begin_outage();
        let away = self.outage.map(|(away, _)| away);
        self.faults.take_gateway_away(away == Some(Away::Gateway));
        for time in runs.times(day) {
            let moment = (time - TimeDelta::hours(1), day, calm.config.policy.lead);
            customers::act(&calm.table, &self.everyone, moment, &mut self.rng, &mut self.acts).await?;
            if away != Some(Away::Us) {
                self.run(day, time, runs).await;
            }
        }
        self.faults.take_gateway_away(false);
        Ok(())
    }

    /// Both batches, until they come to their end or a crash ends them. What they answer is not asked: the records and
    /// the ledger tell.
    async fn run(&mut self, day: NaiveDate, time: DateTime<Utc>, runs: &mut DailyRuns) {
        let ended = self.injector.run(runs.both(day, time)).await;
        self.crashes += u64::from(ended.is_none());
    }

    fn begin_outage(&mut self) {
        self.outage = self.outage.and_then(|(away, days)| Some((away, days.checked_sub(1).filter(|left| *left > 0)?)));
        if self.outage.is_none() && self.rng.random_ratio(1, OUTAGE_ONE_IN) {
            let away = if self.rng.random() { Away::Us } else { Away::Gateway };
            // Now and then one outlasts a month.
            let days = if self.rng.random_ratio(1, 12) { 40 } else { self.rng.random_range(1..=6) };
            self.outage = Some((away, days));
        }
        self.outage_days += usize::from(self.outage.is_some());
    }

    /// Checks all of it, after the last day of `timespan`.
    pub fn check(&self, books: &Books, ledger: &[Entry], config: &Config, timespan: Timespan) -> Vec<Finding> {
        let mut findings = check_always(books);
        let (policy, zone) = (&config.policy, config.zone);
        findings.push(oracle::check(&Evidence {
            begun: &self.begun,
            acts: &self.acts,
            ledger,
            books,
            policy,
            zone,
            calm_from: timespan.calm_from,
            as_of: timespan.last,
        }));
        findings
    }

    /// What trouble there was so far.
    pub fn summary(&self) -> TroubleSummary {
        TroubleSummary {
            seed: self.seed,
            faults: self.faults.injected(),
            crashes: self.crashes,
            outage_days: self.outage_days,
            acts: self.acts.len(),
        }
    }
}
