//! Executes the days of a simulation with faults: starts the planned tasks as actors, resumes their calls in the order of
//! the schedule, and lets the gateway make late payments and send events.

use std::rc::Rc;

use billing::{NewSubscription, SubscriptionId};
use chrono::{NaiveDate, TimeDelta};
use clock::Clock as _;
use serde_json::{Value, json};

use super::day_planner::{DayPlanner, PlannedTask, SimulatedOutage};
use super::{FaultSimulation, actor_tasks, process};
use crate::SimulationError;
use crate::oracle::ActorRole;
use crate::population::NewSubscriber;
use crate::schedule::{ActorId, ScheduleDecision, poll_future_until_ready};

/// If the gateway makes a late payment or sends an event within this time after the last call of a day, the payment or
/// event still belongs to this day.
const SAME_DAY_LIMIT: TimeDelta = TimeDelta::minutes(10);

impl FaultSimulation {
    /// Creates the first subscriptions before the first day, without faults. From then on, the indexes show writes
    /// late.
    pub(super) fn create_subscriptions(
        &mut self,
        new_subscribers: Vec<NewSubscriber>,
        day_before: NaiveDate,
    ) -> Result<(), SimulationError> {
        let process = self.world.idle_or_new_process(false)?;
        for NewSubscriber { account, subscription } in new_subscribers {
            let subscription = NewSubscription { id: SubscriptionId::new(self.world.clock.ulid()), ..subscription };
            let created =
                poll_future_until_ready(process.deployment.create_subscription(&account, subscription, day_before));
            created
                .map_err(|source| SimulationError::CreateSubscription { account: account.id.to_string(), source })?;
        }
        self.world.history.set_index_consistent(false);
        Ok(())
    }

    /// Simulates a day with faults.
    pub(super) fn simulate_day_with_faults(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        let subscriptions = u32::try_from(self.world.oracle().expected_subscriptions().count()).unwrap_or(u32::MAX);
        self.planned_tasks = {
            let mut rng = self.world.rng.borrow_mut();
            let outage = self.planner.advance_to_next_day(&mut rng);
            self.world.faults.set_gateway_outage(outage == Some(SimulatedOutage::Gateway));
            self.planner.plan_with_faults(day, self.world.zone(), subscriptions, outage, &mut rng)
        };
        self.subscription_days += u64::from(subscriptions);
        if let Some(backup) = self.backup.as_ref().filter(|backup| self.world.day_of(backup.at) == day) {
            self.planned_tasks.push((backup.at, PlannedTask::CopyTable));
        }
        self.run_planned_tasks()
    }

    /// Simulates a day without faults.
    pub(super) fn simulate_day_without_faults(&mut self, day: NaiveDate) -> Result<(), SimulationError> {
        self.subscription_days += self.world.oracle().expected_subscriptions().count() as u64;
        self.planned_tasks = DayPlanner::plan_without_faults(day, self.world.zone());
        self.run_planned_tasks()
    }

    /// Stops all faults, and switches charging on.
    pub(super) fn stop_faults(&mut self) -> Result<(), SimulationError> {
        self.world.stop_faults();
        let process = self.world.idle_or_new_process(false)?;
        Ok(poll_future_until_ready(process.deployment.table.set_charging(true, None))?)
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
                ScheduleDecision::Resume(actor) => {
                    self.actors.resume(actor);
                    self.end_finished_actors();
                }
                ScheduleDecision::TimePassed => {}
                ScheduleDecision::NoPendingCall if !self.actors.is_empty() => {
                    self.world.oracle().violations.push("an actor waits although no call is pending".to_owned());
                }
                // All planned tasks have finished. A late payment or an event of the gateway within `SAME_DAY_LIMIT`
                // still belongs to this day. A later payment or event belongs to the next day, because the runs of the
                // next day may start earlier.
                ScheduleDecision::NoPendingCall => {
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
            PlannedTask::RunPayments(date) => self.start_actor(ActorRole::Payments, Some(date), false, |_, process| {
                actor_tasks::run_payments(world, process, date)
            }),
            PlannedTask::RunReminders(date) => {
                self.start_actor(ActorRole::Reminders, Some(date), false, |_, process| {
                    actor_tasks::run_reminders(world, process, date)
                })
            }
            PlannedTask::SendCustomerRequest => {
                let Some((subscription, action)) = self.random_customer_request() else { return Ok(()) };
                let role = ActorRole::Request { subscription: subscription.clone(), action: action.clone() };
                self.start_actor(role, None, false, |actor, process| {
                    actor_tasks::send_customer_request(world, process, actor, subscription, action)
                })
            }
            PlannedTask::CreateSubscription => {
                let Some((account, new)) = self.random_account_and_new_subscription() else { return Ok(()) };
                self.start_actor(ActorRole::Operator, None, false, |actor, process| {
                    actor_tasks::create_subscription(world, process, actor, account, new)
                })
            }
            PlannedTask::ResolveAttempt => {
                let Some(subscription) = self.random_long_open_subscription() else { return Ok(()) };
                self.start_actor(ActorRole::Resolver, None, true, |_, process| {
                    actor_tasks::resolve_attempt(world, process, subscription)
                })
            }
            PlannedTask::DeliverEvent(event) => self.start_actor(ActorRole::Webhook, None, false, |_, process| {
                actor_tasks::deliver_event(world, process, event)
            }),
            PlannedTask::SwitchCharging(is_on) => self.start_actor(ActorRole::Operator, None, false, |_, process| {
                actor_tasks::switch_charging(process, is_on)
            }),
            PlannedTask::SetCeiling(ceiling) => {
                let ceiling = ceiling.map_or("none".to_owned(), |ceiling| ceiling.to_string());
                let limits = json!({":limits": {"M": {"max-charges": {"S": ceiling}}}});
                self.update_settings("SET PaymentLimits = :limits", limits)
            }
            PlannedTask::CopyTable => {
                if let Some(backup) = &mut self.backup {
                    backup.copy_table(&self.world);
                }
                Ok(())
            }
            PlannedTask::SetShards(shards) => {
                self.update_settings("SET Shards = :n", json!({":n": {"N": shards.to_string()}}))
            }
        }
    }

    /// Updates the settings in the table with the update expression `expression` and its `values`.
    fn update_settings(&self, expression: &str, values: Value) -> Result<(), SimulationError> {
        let update = json!({
            "TableName": self.world.config.table.name,
            "Key": {"PK": {"S": "CTL#settings"}, "SK": {"S": "CTL#settings"}},
            "UpdateExpression": expression,
            "ExpressionAttributeValues": values,
        });
        self.world.engine.execute("UpdateItem", &update).map_err(SimulationError::Engine)?;
        Ok(())
    }

    /// Starts an actor that executes `task` until the task finishes or a crash ends it. `date` and `is_prompt` are
    /// explained at [`SimulatedWorld::start_actor`].
    fn start_actor<F: Future<Output = ()> + 'static>(
        &mut self,
        role: ActorRole,
        date: Option<NaiveDate>,
        is_prompt: bool,
        task: impl FnOnce(ActorId, Rc<process::SimulatedProcess>) -> F,
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
