//! A simulation with faults: months of a whole deployment with random faults, outages and customer actions. One seed
//! decides all these faults, outages and actions, and the oracle checks every write, charge and mail.
//!
//! The simulation runs the production code: both batches, the API, the webhook receiver, and the `AttemptResolver`,
//! with which an operator resolves an unknown outcome. Each of these tasks runs in its own simulated process,
//! concurrently with the other tasks. Two simulations with the same seed make the same calls in the same order.

mod actor_tasks;
mod corrupter;
mod day_planner;
mod process;
mod random_choices;
mod seeds;
mod world;

use audit::InvariantChecker;
use std::rc::Rc;

use billing::{NewSubscription, SubscriptionId};
use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use clock::Clock as _;
use deployment::Config;
use serde_json::json;

use crate::SimulationError;
use crate::history::SimulatedRecords;
use crate::oracle::{OracleCounts, Role};
use crate::population::NewSubscriber;
use crate::random_faults::FaultConfig;
use crate::schedule::{ActorId, Actors, Decision, now_or_panic};
use crate::simulated_gateway::GatewayKind;
use corrupter::Corrupter;
pub use corrupter::InjectedCorruption;
use day_planner::{DayPlanner, Outage, PlannedTask};
pub use seeds::{FaultSimulationSettings, simulate_seeds};
use world::World;

/// The number of days between the first day without faults and the last day. In these days, the system finishes the
/// work that outages left, and bank debits complete.
const FAULT_FREE_DAYS: u64 = 8;
/// If the gateway makes a late payment or sends an event within this time after the last call of a day, the payment or
/// event still belongs to this day.
const SAME_DAY_LIMIT: TimeDelta = TimeDelta::minutes(10);

/// The result of a simulation with faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultSimulationResult {
    pub seed: u64,
    pub from: NaiveDate,
    /// The last day of the simulation.
    pub to: NaiveDate,
    /// The number of subscriptions at the end.
    pub subscriptions: usize,
    /// The number of subscriptions, summed over all days.
    pub subscription_days: u64,
    /// The numbers of writes, charges and mails that the oracle checked.
    pub counts: OracleCounts,
    /// The number of events that followed from the changes of the table.
    pub events: usize,
    /// The number of external calls (to the table, the gateway or the mailer) that the schedule resumed.
    pub turns: u64,
    /// The number of injected faults. Requests that were lost in an outage of the gateway are not included.
    pub faults: u64,
    /// The number of days with an outage of the whole system or of the gateway.
    pub outage_days: u32,
    /// A hash of every external call, every response and every instant, in their order.
    pub digest: u64,
    /// The events and the items of the simulation.
    pub records: SimulatedRecords,
    /// The corruptions of stored items, in their order. Empty unless the simulation corrupts items.
    pub corruptions: Vec<InjectedCorruption>,
    /// The violations that the oracle found. The simulation ends on the day of the first violation.
    pub violations: Vec<String>,
}

/// A simulation with faults that is in progress.
struct FaultSimulation {
    world: Rc<World>,
    actors: Actors,
    /// The actors that have not finished, each with its process.
    busy: Vec<(ActorId, Rc<process::Process>)>,
    /// The tasks of the day that have not started, the latest first.
    planned_tasks: Vec<(DateTime<Utc>, PlannedTask)>,
    planner: DayPlanner,
    /// Corrupts items; `None` in a simulation without corruptions.
    corrupter: Option<Corrupter>,
    subscription_days: u64,
    /// The number of subscriptions that were created during the simulation.
    created: u32,
}

/// Simulates `new_subscribers` for `months` months from the day `from`, with the given faults and gateway,
/// and then for some days without faults. Calls `on_day` after each day without a violation.
///
/// # Errors
/// [`SimulationError`] if a date is out of range, a subscription cannot be created, or the table cannot be accessed.
pub fn simulate_with_faults(
    config: Config,
    new_subscribers: Vec<NewSubscriber>,
    (from, months): (NaiveDate, u32),
    (fault_config, gateway): (FaultConfig, GatewayKind),
    on_day: impl FnMut(NaiveDate),
) -> Result<FaultSimulationResult, SimulationError> {
    run_simulation(config, new_subscribers, (from, months), (fault_config, gateway), None, on_day)
}

/// Simulates like [`simulate_with_faults`], and also corrupts most accounts: one attribute of one item on a random day.
/// After each corruption, the audit of the account must find the corruption, or `CORRUPTIONS_THE_AUDIT_MAY_MISS` must
/// contain the attribute. The corrupted items are not repaired. For an account with a corruption, the oracle checks
/// only that no month is charged twice. For all other accounts, the oracle makes all its checks. The published events
/// are not checked.
///
/// # Errors
/// As [`simulate_with_faults`].
pub fn simulate_with_corruptions(
    config: Config,
    new_subscribers: Vec<NewSubscriber>,
    (from, months): (NaiveDate, u32),
    (fault_config, gateway): (FaultConfig, GatewayKind),
) -> Result<FaultSimulationResult, SimulationError> {
    let corrupter = Corrupter::new(fault_config.seed);
    run_simulation(config, new_subscribers, (from, months), (fault_config, gateway), Some(corrupter), |_| {})
}

/// Executes a simulation with faults. `corrupter` corrupts items; `None` in a simulation without corruptions.
fn run_simulation(
    mut config: Config,
    new_subscribers: Vec<NewSubscriber>,
    (from, months): (NaiveDate, u32),
    (fault_config, gateway): (FaultConfig, GatewayKind),
    corrupter: Option<Corrupter>,
    mut on_day: impl FnMut(NaiveDate),
) -> Result<FaultSimulationResult, SimulationError> {
    let day_before = from.pred_opt().ok_or(SimulationError::Calendar)?;
    let fault_free_from = from.checked_add_months(chrono::Months::new(months)).ok_or(SimulationError::Calendar)?;
    let to = fault_free_from.checked_add_days(Days::new(FAULT_FREE_DAYS)).ok_or(SimulationError::Calendar)?;
    config.charging.gateway_rate = None;
    let shards = config.table.initial_shards;
    let checker = InvariantChecker {
        shards,
        today: day_before,
        now: day_before.and_time(NaiveTime::MIN).and_utc(),
        records_kept: config.table.receipt_retention,
        retry_days: config.billing.policy.dunning.days(),
        lease: config.billing.lease,
        lead: config.billing.policy.lead,
    };
    let noon = NaiveTime::from_hms_opt(12, 0, 0).unwrap_or_default();
    let world = World::new(config, day_before.and_time(noon).and_utc(), fault_config, gateway);
    let mut simulation = FaultSimulation {
        world: Rc::new(world),
        actors: Actors::default(),
        busy: Vec::new(),
        planned_tasks: Vec::new(),
        planner: DayPlanner::new(shards),
        corrupter,
        subscription_days: 0,
        created: 0,
    };
    simulation.create_subscriptions(new_subscribers, day_before)?;
    for day in from.iter_days().take_while(|day| *day <= to) {
        if day == fault_free_from {
            simulation.stop_faults()?;
        }
        if day < fault_free_from {
            if let Some(corrupter) = &mut simulation.corrupter {
                corrupter.corrupt_items(&simulation.world, checker, day);
            }
            simulation.simulate_day_with_faults(day)?
        } else {
            simulation.simulate_day_without_faults(day)?
        }
        if !simulation.world.oracle().violations.is_empty() {
            break;
        }
        on_day(day);
    }
    let world = simulation.world;
    world.history.add_table_to_trace();
    let mut oracle = world.oracle();
    if oracle.violations.is_empty() {
        oracle.check_end_of_simulation(world.clock.now(), to);
        if simulation.corrupter.is_none() {
            oracle.violations.extend(world.history.find_contradictions());
        }
        let checker = InvariantChecker { shards, today: to, now: world.clock.now(), ..checker };
        let audited = world.history.audit_intact_accounts(checker, |account| oracle.is_corrupted(account));
        oracle.violations.extend(audited);
    }
    Ok(FaultSimulationResult {
        seed: fault_config.seed,
        from,
        to,
        subscriptions: oracle.expected_subscriptions().count(),
        subscription_days: simulation.subscription_days,
        counts: oracle.counts,
        events: world.history.event_count(),
        turns: world.schedule.resumed_calls(),
        faults: world.faults.fault_count(),
        outage_days: simulation.planner.outage_days,
        digest: world.schedule.trace_digest(),
        records: world.history.records(),
        corruptions: simulation.corrupter.map(|corrupter| corrupter.injected).unwrap_or_default(),
        violations: oracle.violations.clone(),
    })
}

impl FaultSimulation {
    /// Creates the first subscriptions before the first day, without faults. From then on, the indexes show writes
    /// late.
    fn create_subscriptions(
        &mut self,
        new_subscribers: Vec<NewSubscriber>,
        day_before: NaiveDate,
    ) -> Result<(), SimulationError> {
        let process = self.world.idle_or_new_process(false)?;
        for NewSubscriber { account, subscription } in new_subscribers {
            let subscription = NewSubscription { id: SubscriptionId::new(self.world.clock.ulid()), ..subscription };
            let created = now_or_panic(process.deployment.create_subscription(&account, subscription, day_before));
            created
                .map_err(|source| SimulationError::CreateSubscription { account: account.id.to_string(), source })?;
        }
        self.world.history.set_index_consistent(false);
        Ok(())
    }

    /// Simulates a day with faults.
    fn simulate_day_with_faults(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        let subscriptions = u32::try_from(self.world.oracle().expected_subscriptions().count()).unwrap_or(u32::MAX);
        self.planned_tasks = {
            let mut rng = self.world.rng.borrow_mut();
            let outage = self.planner.advance_to_next_day(&mut rng);
            self.world.faults.set_gateway_outage(outage == Some(Outage::Gateway));
            self.planner.plan_with_faults(day, self.world.config.billing.zone, subscriptions, outage, &mut rng)
        };
        self.subscription_days += u64::from(subscriptions);
        self.run_planned_tasks()
    }

    /// Simulates a day without faults.
    fn simulate_day_without_faults(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        self.subscription_days += self.world.oracle().expected_subscriptions().count() as u64;
        self.planned_tasks = DayPlanner::plan_without_faults(day, self.world.config.billing.zone);
        self.run_planned_tasks()
    }

    /// Stops all faults, and switches charging on.
    fn stop_faults(&mut self) -> Result<(), SimulationError> {
        self.world.stop_faults();
        let process = self.world.idle_or_new_process(false)?;
        Ok(now_or_panic(process.deployment.table.set_charging(true, None))?)
    }

    /// Executes the planned tasks of the day until all actors have finished, or until the oracle reports a violation.
    fn run_planned_tasks(&mut self) -> Result<(), SimulationError> {
        self.planned_tasks.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        loop {
            let now = self.world.clock.now();
            while self.planned_tasks.last().is_some_and(|(at, _)| *at <= now) {
                if let Some((_, task)) = self.planned_tasks.pop() {
                    self.start_task(task)?;
                }
            }
            self.world.gateway.make_late_payments();
            for event in self.world.gateway.events_to_send() {
                self.start_task(PlannedTask::DeliverEvent(event))?;
            }
            if !self.world.oracle().violations.is_empty() {
                return Ok(());
            }
            let gateway = &self.world.gateway;
            let next_by_gateway = gateway.next_late_payment_time().into_iter().chain(gateway.next_event_time());
            let next = self.planned_tasks.last().map(|(at, _)| *at).into_iter().chain(next_by_gateway).min();
            match self.world.schedule.decide_next_step(next) {
                Decision::Resume(actor) => {
                    self.actors.resume(actor);
                    self.end_finished_actors();
                }
                Decision::TimePassed => {}
                Decision::NoPendingCall if !self.actors.is_empty() => {
                    self.world.oracle().violations.push("an actor waits although no call is pending".to_owned());
                }
                // All planned tasks have finished. A late payment or an event of the gateway within `SAME_DAY_LIMIT`
                // still belongs to this day. A later payment or event belongs to the next day, because the runs of the
                // next day may start earlier.
                Decision::NoPendingCall => {
                    match next.filter(|next| !self.planned_tasks.is_empty() || *next < now + SAME_DAY_LIMIT) {
                        Some(next) => self.world.clock.set(next.max(now)),
                        None => return Ok(()),
                    }
                }
            }
        }
    }

    /// Ends the actors that have finished, and frees their processes.
    fn end_finished_actors(&mut self) {
        let (world, actors) = (&self.world, &self.actors);
        self.busy.retain(|(actor, process)| {
            let is_running = actors.contains(*actor);
            if !is_running {
                world.end_actor(*actor, process.clone());
            }
            is_running
        });
    }

    /// Starts an actor that executes `task`. Some tasks need a subscription and do nothing if no subscription fits.
    fn start_task(&mut self, task: PlannedTask) -> Result<(), SimulationError> {
        let world = self.world.clone();
        match task {
            PlannedTask::RunPayments(date) => self.start_actor(Role::Payments, Some(date), false, |_, process| {
                actor_tasks::run_payments(world, process, date)
            }),
            PlannedTask::RunReminders(date) => self.start_actor(Role::Reminders, Some(date), false, |_, process| {
                actor_tasks::run_reminders(world, process, date)
            }),
            PlannedTask::SendCustomerRequest => {
                let Some((subscription, action)) = self.random_customer_request() else { return Ok(()) };
                let role = Role::Request { subscription: subscription.clone(), action: action.clone() };
                self.start_actor(role, None, false, |actor, process| {
                    actor_tasks::send_customer_request(world, process, actor, subscription, action)
                })
            }
            PlannedTask::CreateSubscription => {
                let Some((account, new)) = self.random_account_and_new_subscription() else { return Ok(()) };
                self.start_actor(Role::Operator, None, false, |actor, process| {
                    actor_tasks::create_subscription(world, process, actor, account, new)
                })
            }
            PlannedTask::ResolveAttempt => {
                let Some(subscription) = self.random_long_open_subscription() else { return Ok(()) };
                self.start_actor(Role::Resolver, None, true, |_, process| {
                    actor_tasks::resolve_attempt(world, process, subscription)
                })
            }
            PlannedTask::DeliverEvent(event) => self.start_actor(Role::Webhook, None, false, |_, process| {
                actor_tasks::deliver_event(world, process, event)
            }),
            PlannedTask::SwitchCharging(is_on) => {
                self.start_actor(Role::Operator, None, false, |_, process| actor_tasks::switch_charging(process, is_on))
            }
            PlannedTask::SetCeiling(ceiling) => {
                let ceiling = ceiling.map_or("none".to_owned(), |ceiling| ceiling.to_string());
                let update = json!({
                    "TableName": self.world.config.table.name,
                    "Key": {"PK": {"S": "CTL#settings"}, "SK": {"S": "CTL#settings"}},
                    "UpdateExpression": "SET PaymentLimits = :limits",
                    "ExpressionAttributeValues": {":limits": {"M": {"max-charges": {"S": ceiling}}}},
                });
                self.world.engine.execute("UpdateItem", &update).map_err(SimulationError::Engine)?;
                Ok(())
            }
            PlannedTask::SetShards(shards) => {
                let update = json!({
                    "TableName": self.world.config.table.name,
                    "Key": {"PK": {"S": "CTL#settings"}, "SK": {"S": "CTL#settings"}},
                    "UpdateExpression": "SET Shards = :n",
                    "ExpressionAttributeValues": {":n": {"N": shards.to_string()}},
                });
                self.world.engine.execute("UpdateItem", &update).map_err(SimulationError::Engine)?;
                Ok(())
            }
        }
    }

    /// Starts an actor that executes `task` until the task finishes or a crash ends it. `date` and `is_prompt` are
    /// explained at [`World::start_actor`].
    fn start_actor<F: Future<Output = ()> + 'static>(
        &mut self,
        role: Role,
        date: Option<NaiveDate>,
        is_prompt: bool,
        task: impl FnOnce(ActorId, Rc<process::Process>) -> F,
    ) -> Result<(), SimulationError> {
        let (actor, process) = self.world.start_actor(role, date, is_prompt)?;
        let (task, injector) = (task(actor, process.clone()), process.injector.clone());
        self.busy.push((actor, process));
        self.actors.start(actor, async move {
            injector.run(task).await;
        });
        self.end_finished_actors();
        Ok(())
    }
}
