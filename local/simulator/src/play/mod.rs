//! A play: months of a whole deployment in trouble, decided by one seed and judged after every step.
//!
//! What runs is the shipped code: both batches, the API, and whoever resolves by hand, each in a process of its own, all
//! at once. Equal seeds make equal plays, call by call.

mod day;
mod deeds;
mod people;
mod process;
mod seeds;
mod world;

use std::rc::Rc;

use billing::{NewSubscription, SubscriptionId};
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use clock::Clock as _;
use emulator::Config;
use serde_json::json;

use crate::SimulationError;
use crate::oracle::{Judged, Role};
use crate::played_gateway::GatewayKind;
use crate::population::Enrolment;
use crate::random_faults::Odds;
use crate::schedule::{ActorId, Actors, Decision, now_or_panic};
use day::{Away, Plan, Times};
pub use seeds::{Setting, play_seeds};
use world::World;

/// Days without trouble at the end: what an outage left is caught up, and debits are answered.
const CALM_DAYS: u64 = 8;
/// What the gateway does within this time it does on the same day.
const SOON: TimeDelta = TimeDelta::minutes(10);

/// What a play came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Played {
    pub seed: u64,
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    pub subscriptions: usize,
    /// Subscriptions times days.
    pub subscription_days: u64,
    pub judged: Judged,
    /// What a listener would have heard.
    pub events: usize,
    pub turns: u64,
    pub faults: u64,
    pub outage_days: u32,
    /// Of every call, every answer and every instant, in their order.
    pub digest: u64,
    /// What was wrong; the play ends with the first of it.
    pub wrong: Vec<String>,
}

/// A play that is going on.
struct Play {
    world: Rc<World>,
    actors: Actors,
    busy: Vec<(ActorId, Rc<process::Process>)>,
    plans: Vec<(DateTime<Utc>, Plan)>,
    times: Times,
    subscription_days: u64,
    created: u32,
}

/// Plays `enrolments` over `months` from the day `from`, in as much trouble as `odds` make, with that gateway; tells `on_day` of each day.
///
/// # Errors
/// [`SimulationError`]: subscriptions that cannot begin.
pub fn play(
    mut config: Config,
    enrolments: Vec<Enrolment>,
    (from, months): (NaiveDate, u32),
    (odds, gateway): (Odds, GatewayKind),
    mut on_day: impl FnMut(NaiveDate),
) -> Result<Played, SimulationError> {
    let eve = from.pred_opt().ok_or(SimulationError::Calendar)?;
    let calm_from = from.checked_add_months(chrono::Months::new(months)).ok_or(SimulationError::Calendar)?;
    let to = calm_from.checked_add_days(Days::new(CALM_DAYS)).ok_or(SimulationError::Calendar)?;
    config.charging.gateway_rate = None;
    let shards = config.table.initial_shards;
    let noon = NaiveTime::from_hms_opt(12, 0, 0).unwrap_or_default();
    let world = World::new(config, eve.and_time(noon).and_utc(), odds, gateway);
    let mut play = Play {
        world: Rc::new(world),
        actors: Actors::default(),
        busy: Vec::new(),
        plans: Vec::new(),
        times: Times::new(shards),
        subscription_days: 0,
        created: 0,
    };
    play.enrol(enrolments, eve)?;
    for day in from.iter_days().take_while(|day| *day <= to) {
        if day == calm_from {
            play.calm_down()?;
        }
        if day < calm_from {
            play.trouble(day)?
        } else {
            play.calm(day)?
        }
        if !play.world.oracle().wrong.is_empty() {
            break;
        }
        on_day(day);
    }
    let world = play.world;
    world.history.note_all();
    let mut oracle = world.oracle();
    if oracle.wrong.is_empty() {
        oracle.close(world.clock.now(), to);
        oracle.wrong.extend(world.history.contradictions());
    }
    Ok(Played {
        seed: odds.seed,
        from,
        to,
        subscriptions: oracle.agreements().count(),
        subscription_days: play.subscription_days,
        judged: oracle.judged,
        events: world.history.events(),
        turns: world.schedule.turns(),
        faults: world.faults.injected(),
        outage_days: play.times.outage_days,
        digest: world.schedule.digest(),
        wrong: oracle.wrong.clone(),
    })
}

impl Play {
    fn enrol(&mut self, enrolments: Vec<Enrolment>, eve: NaiveDate) -> Result<(), SimulationError> {
        let deployment = self.world.process(false)?;
        for Enrolment { account, subscription } in enrolments {
            let subscription = NewSubscription { id: SubscriptionId::new(self.world.clock.ulid()), ..subscription };
            let enrolled = now_or_panic(deployment.deployment.enrol(&account, subscription, eve));
            enrolled.map_err(|source| SimulationError::Enrol { account: account.id.to_string(), source })?;
        }
        self.world.history.be_calm(false);
        Ok(())
    }

    /// A day in trouble.
    fn trouble(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        let people = u32::try_from(self.world.oracle().agreements().count()).unwrap_or(u32::MAX);
        self.plans = {
            let mut rng = self.world.rng.borrow_mut();
            let away = self.times.away(&mut rng);
            self.world.faults.take_gateway_away(away == Some(Away::Gateway));
            self.times.plan(day, self.world.config.billing.zone, people, away, &mut rng)
        };
        self.subscription_days += u64::from(people);
        self.go_through()
    }

    /// A calm day.
    fn calm(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        self.subscription_days += self.world.oracle().agreements().count() as u64;
        self.plans = Times::calm(day, self.world.config.billing.zone);
        self.go_through()
    }

    fn calm_down(&mut self) -> Result<(), SimulationError> {
        self.world.calm_down();
        let process = self.world.process(false)?;
        Ok(now_or_panic(process.deployment.table.set_charging(true))?)
    }

    /// Everything that is planned, until all who began are done.
    fn go_through(&mut self) -> Result<(), SimulationError> {
        self.plans.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        loop {
            let now = self.world.clock.now();
            while self.plans.last().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, plan)) = self.plans.pop() {
                    self.begin(plan)?;
                }
            }
            self.world.gateway.make_late_payments();
            for event in self.world.gateway.events() {
                self.begin(Plan::Event(event))?;
            }
            if !self.world.oracle().wrong.is_empty() {
                return Ok(());
            }
            let gateway = &self.world.gateway;
            let its_next = gateway.next_late_payment().into_iter().chain(gateway.next_event());
            let next = self.plans.last().map(|(at, _)| *at).into_iter().chain(its_next).min();
            match self.world.schedule.decide(next) {
                Decision::Turn(actor) => {
                    self.actors.go_on(actor);
                    self.tidy_up();
                }
                Decision::Time => {}
                Decision::Nobody if !self.actors.is_empty() => {
                    self.world.oracle().wrong.push("somebody waits for nothing".to_owned());
                }
                // What the gateway does hours later belongs to the next day, which has runs before it.
                Decision::Nobody => match next.filter(|next| !self.plans.is_empty() || *next < now + SOON) {
                    Some(next) => self.world.clock.set(next.max(now)),
                    None => return Ok(()),
                },
            }
        }
    }

    /// Those who are done leave.
    fn tidy_up(&mut self) {
        let (world, actors) = (&self.world, &self.actors);
        self.busy.retain(|(actor, process)| {
            let is_there = actors.has(*actor);
            if !is_there {
                world.end(*actor, process.clone());
            }
            is_there
        });
    }

    fn begin(&mut self, plan: Plan) -> Result<(), SimulationError> {
        let world = self.world.clone();
        match plan {
            Plan::Payments(date) => {
                self.start(Role::Payments, Some(date), false, |_, process| deeds::payments(world, process, date))
            }
            Plan::Reminders(date) => {
                self.start(Role::Reminders, Some(date), false, |_, process| deeds::reminders(world, process, date))
            }
            Plan::Request => {
                let Some((who, act)) = self.somebody() else { return Ok(()) };
                let role = Role::Request { who: who.clone(), act: act.clone() };
                self.start(role, None, false, |actor, process| deeds::request(world, process, actor, who, act))
            }
            Plan::Create => {
                let Some((account, new)) = self.somebody_new() else { return Ok(()) };
                self.start(Role::Operator, None, false, |actor, process| {
                    deeds::create(world, process, actor, account, new)
                })
            }
            Plan::Resolve => {
                let Some(who) = self.somebody_stuck() else { return Ok(()) };
                self.start(Role::Resolver, None, true, |_, process| deeds::resolve(world, process, who))
            }
            Plan::Event(event) => {
                self.start(Role::Webhook, None, false, |_, process| deeds::event(world, process, event))
            }
            Plan::Charging(is_on) => {
                self.start(Role::Operator, None, false, |_, process| deeds::switch(process, is_on))
            }
            Plan::Shards(shards) => {
                let update = json!({
                    "TableName": self.world.config.table.name,
                    "Key": {"PK": {"S": "CTL#settings"}, "SK": {"S": "CTL#settings"}},
                    "UpdateExpression": "SET Shards = :n",
                    "ExpressionAttributeValues": {":n": {"N": shards.to_string()}},
                });
                self.world.engine.ask("UpdateItem", &update).map_err(SimulationError::Engine)?;
                Ok(())
            }
        }
    }

    /// Somebody begins: until it is done, or a crash ends it.
    fn start<F: Future<Output = ()> + 'static>(
        &mut self,
        role: Role,
        date: Option<NaiveDate>,
        is_prompt: bool,
        deed: impl FnOnce(ActorId, Rc<process::Process>) -> F,
    ) -> Result<(), SimulationError> {
        let (actor, process) = self.world.begin(role, date, is_prompt)?;
        let (deed, injector) = (deed(actor, process.clone()), process.injector.clone());
        self.busy.push((actor, process));
        self.actors.begin(actor, async move {
            injector.run(deed).await;
        });
        self.tidy_up();
        Ok(())
    }
}
