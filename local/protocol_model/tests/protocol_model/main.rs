//! An exhaustive exploration of the payment protocol with a model of one subscription. The model contains workers that
//! crash at any step, leases that expire, a gateway that forgets idempotency keys, requests that arrive late, an index
//! with stale dates, and a customer. The tests visit every state that the model can reach within the bounds of a test.

mod customer;
mod flaw;
mod gateway;
mod invariants;
mod subscription_model;
mod worker;

use std::collections::{HashSet, VecDeque};

use billing::{Account, Attempt, CatchUp, ClaimToken, Policy, Subscription};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use customer::CustomerAction;
use emulator::Engine;
use flaw::Flaw;
use gateway::GatewayDecision::{AcceptsForProcessing, DeclinesHard, DeclinesSoftly, Rejects, Succeeds};
use invariants::{ALL_SETTLED_LATER, CHARGE_NOT_LOST, CHARGED_ONCE, STOPPED_NOT_CLAIMED};
use mimalloc::MiMalloc;
use stateright::{Checker, HasDiscoveries, Model};
use store::{Claim, ClaimOutcome, SubscriptionKey, Table};
use subscription_model::{LEASE, SubscriptionModel, parse_instants};
use testkit::sample_account;
use ulid::Ulid;

// The allocator mimalloc is faster than the default allocator: the exploration allocates in two threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Returns a text with each violated invariant and the actions that lead to the violation; empty if there is none.
fn violated_invariants(checker: &impl Checker<SubscriptionModel>) -> String {
    let mut text = String::new();
    for (invariant, path) in checker.discoveries() {
        text += &format!("\nviolated: {invariant}, by:\n");
        path.into_actions().iter().for_each(|action| text += &format!("    {action:?}\n"));
    }
    text
}

/// Visits every state of `model`. Checks that no state violates an invariant, and that there are more than `min_states`
/// states, so that the exploration did not end too early.
fn explore(model: SubscriptionModel, min_states: usize) {
    let checker = model.checker().threads(2).spawn_bfs().join();
    assert_eq!(violated_invariants(&checker), "");
    assert!(checker.unique_state_count() > min_states, "only {} states", checker.unique_state_count());
}

#[test]
fn two_workers_charge_once_and_lose_no_charge_for_every_gateway_decision() {
    // The columns are: the decision that the gateway may make besides success; the minimum number of states.
    for (other, min_states) in
        [(DeclinesSoftly, 200_000), (DeclinesHard, 50_000), (Rejects, 50_000), (AcceptsForProcessing, 100_000)]
    {
        explore(SubscriptionModel { decisions: vec![Succeeds, other], ..SubscriptionModel::new() }, min_states);
    }
}

#[test]
fn charge_after_the_lease_expired_is_harmless_while_the_idempotency_key_exists() {
    explore(SubscriptionModel { max_delay: TimeDelta::hours(23), ..SubscriptionModel::new() }, 200_000);
}

#[test]
fn two_workers_charge_correctly_with_a_customer_action_at_any_moment() {
    let a_day = parse_instants(&["2026-01-31T06:00:00Z", "2026-01-31T06:30:00Z", "2026-02-01T07:00:00Z"]);
    let model = SubscriptionModel {
        instants: a_day,
        decisions: vec![Succeeds],
        customer_actions: CustomerAction::ALL.to_vec(),
        max_customer_actions: 1,
        ..SubscriptionModel::new()
    };
    explore(model, 100_000);
}

#[test]
fn one_worker_charges_correctly_with_two_customer_actions() {
    let model = SubscriptionModel {
        workers: 1,
        customer_actions: CustomerAction::ALL.to_vec(),
        max_customer_actions: 2,
        ..SubscriptionModel::new()
    };
    // The first instant is the day before the due date, because a subscription can be paused only while no month is
    // owed.
    let days = ["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z", "2026-01-31T06:30:00Z", "2026-02-01T07:00:00Z"];
    explore(SubscriptionModel { instants: parse_instants(&days), ..model.clone() }, 90_000);
    let months = ["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z", "2026-01-31T06:30:00Z", "2026-03-15T07:00:00Z"];
    explore(
        SubscriptionModel { instants: parse_instants(&months), decisions: vec![Succeeds, DeclinesHard], ..model },
        90_000,
    );
}

#[test]
fn catch_up_after_an_outage_of_months_charges_once_and_loses_no_charge() {
    let months = ["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z", "2026-03-31T06:00:00Z", "2026-04-01T07:00:00Z"];
    let customer_actions = vec![
        CustomerAction::Pause,
        CustomerAction::Resume,
        CustomerAction::CancelAtPeriodEnd,
        CustomerAction::NewPaymentDay,
    ];
    for catch_up in [CatchUp::Each, CatchUp::Latest] {
        let policy = Policy { catch_up, ..SubscriptionModel::new().policy };
        let model = SubscriptionModel {
            instants: parse_instants(&months),
            policy,
            workers: 1,
            customer_actions: customer_actions.clone(),
            max_customer_actions: 2,
            ..SubscriptionModel::new()
        };
        explore(model, 30_000);
    }
}

#[test]
fn breaking_any_rule_doubles_or_loses_a_charge() {
    // The columns are: the broken rule; the decision that the gateway may make besides success; the customer's action;
    // the violated invariant.
    for (flaw, other, action, invariant) in [
        (Flaw::NoClaim, None, None, CHARGED_ONCE),
        (Flaw::NoLookUp, None, None, CHARGED_ONCE),
        (Flaw::NewKeyInDoubt, None, None, CHARGED_ONCE),
        (Flaw::ClaimProvedByRun, None, None, CHARGED_ONCE),
        (Flaw::TakeOverRewritesAttemptAt, None, None, CHARGED_ONCE),
        (Flaw::SettleUnconditionally, Some(DeclinesSoftly), None, CHARGED_ONCE),
        (Flaw::SettleIgnoresStatus, Some(DeclinesSoftly), Some(CustomerAction::Cancel), STOPPED_NOT_CLAIMED),
        (Flaw::NewCardResetsAttemptNumber, Some(DeclinesSoftly), Some(CustomerAction::NewCard), ALL_SETTLED_LATER),
        (Flaw::DeclineNotCancelled, Some(DeclinesSoftly), None, CHARGED_ONCE),
        (Flaw::CancelRemovesOpenAttemptFromIndex, None, Some(CustomerAction::Cancel), ALL_SETTLED_LATER),
        (Flaw::RejectionSettledWithoutClaim, Some(Rejects), None, CHARGED_ONCE),
    ] {
        let decisions = [Succeeds].into_iter().chain(other).collect();
        let model = SubscriptionModel {
            decisions,
            customer_actions: action.into_iter().collect(),
            max_customer_actions: 1,
            flaw,
            ..SubscriptionModel::new()
        };
        assert_violates(model, invariant);
    }
    // On the day before the due date, the customer cancels the subscription at the end of the period. So no worker may
    // claim the month of this due date.
    let day_before = parse_instants(&["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z"]);
    let model = SubscriptionModel {
        instants: day_before,
        customer_actions: vec![CustomerAction::CancelAtPeriodEnd],
        max_customer_actions: 1,
        ..SubscriptionModel::new()
    };
    assert_violates(SubscriptionModel { flaw: Flaw::EndingSubscriptionClaimed, ..model }, STOPPED_NOT_CLAIMED);
    // With these instants, a worker can take over an attempt and look up its payment only 18 minutes later.
    let model = SubscriptionModel {
        decisions: vec![Succeeds],
        customer_actions: vec![CustomerAction::Cancel],
        max_customer_actions: 1,
        ..SubscriptionModel::new()
    };
    let with_suspension =
        ["2026-01-31T06:00:00Z", "2026-01-31T06:21:00Z", "2026-01-31T06:39:00Z", "2026-01-31T06:42:00Z"];
    assert_violates(
        SubscriptionModel {
            instants: parse_instants(&with_suspension),
            flaw: Flaw::PermissionRenewedByLookUp,
            ..model.clone()
        },
        CHARGE_NOT_LOST,
    );
    explore(SubscriptionModel { instants: parse_instants(&with_suspension), ..model }, 20_000);
}

/// Checks that `model`, in which a rule is broken, reaches a state that violates `invariant`.
fn assert_violates(model: SubscriptionModel, invariant: &'static str) {
    let (flaw, is_violated) = (model.flaw, HasDiscoveries::AnyOf([invariant].into()));
    let checker = model.checker().threads(2).finish_when(is_violated).spawn_bfs().join();
    let states = checker.unique_state_count();
    assert!(checker.discovery(invariant).is_some(), "{flaw:?}: none of {states} states violates: {invariant}");
}

#[test]
fn charge_permission_ends_early_enough_for_a_slow_request_within_the_lease() {
    let minutes = ["2026-01-31T06:00:00Z", "2026-01-31T06:04:00Z", "2026-01-31T06:12:00Z", "2026-01-31T06:21:00Z"];
    let model = SubscriptionModel {
        instants: parse_instants(&minutes),
        decisions: vec![Succeeds, Rejects],
        ..SubscriptionModel::new()
    };
    explore(
        SubscriptionModel { customer_actions: vec![CustomerAction::Cancel], max_customer_actions: 1, ..model },
        5_000,
    );
}

/// Returns at least `count` combinations that the model reaches; all combinations, if there are fewer. Each combination
/// contains a stored subscription, a due date that the index may show for it, and the time. The test compares the
/// claims of the model and of the table with them.
fn reachable_items(model: &SubscriptionModel, count: usize) -> Vec<(Subscription, NaiveDate, DateTime<Utc>)> {
    let (mut queue, mut seen) = (VecDeque::from(model.init_states()), HashSet::new());
    let (mut stored, mut found) = (HashSet::new(), Vec::new());
    while let Some(state) = queue.pop_front().filter(|_| found.len() < count) {
        if stored.insert(state.stored.clone()) {
            found.extend(state.shown.iter().map(|shown| (state.stored.clone(), *shown, state.now)));
        }
        queue.extend(model.next_states(&state).into_iter().filter(|next| seen.insert(next.clone())));
    }
    found
}

#[tokio::test]
async fn claims_and_take_overs_of_the_model_agree_with_the_table() {
    let model = SubscriptionModel {
        workers: 1,
        customer_actions: CustomerAction::ALL.to_vec(),
        max_customer_actions: 2,
        ..SubscriptionModel::new()
    };
    let table = Table::new(Engine::in_memory().client(), "dueday");
    table.create_if_absent().await.unwrap();
    let (mut held, mut refused, mut taken_over) = (0, 0, 0);
    for (n, (stored, shown, now)) in reachable_items(&model, 400).into_iter().enumerate() {
        let account = Account { id: format!("account-{n}").parse().unwrap(), ..sample_account() };
        let stored = Subscription { account: account.id.clone(), ..stored };
        table.put_account(&account).await.unwrap();
        table.create_subscription(&stored, None).await.unwrap();
        let claim = Claim { token: ClaimToken(Ulid::from_parts(1, 1)), now, leased_until: now + LEASE };
        let claimed =
            table.claim_payment(&SubscriptionKey::from_subscription(&stored), shown, Ulid::nil(), claim).await.unwrap();
        let expected = match worker::item_after_claim(&stored, shown, claim.token, now) {
            Some(open) => ClaimOutcome::Claimed(Box::new(Subscription { version: stored.version + 1, ..open })),
            None => ClaimOutcome::Refused(Some(Box::new(stored))),
        };
        assert_eq!(claimed, expected, "the index shows the due date {shown}");
        *(if matches!(claimed, ClaimOutcome::Claimed(_)) { &mut held } else { &mut refused }) += 1;

        let (ClaimOutcome::Claimed(stored) | ClaimOutcome::Refused(Some(stored))) = claimed else { continue };
        let Some(open) = stored.attempt.clone() else { continue };
        let later = open.leased_until;
        // Makes three take-overs one after the other. The first expects a lease that the item never had, and the second
        // expects the current lease. The third expects this lease too, although the second take-over has replaced it.
        // Each take-over has a new claim token.
        let seen = [Attempt { leased_until: later + LEASE, ..open.clone() }, open.clone(), open];
        for (seen, token) in seen.into_iter().zip(2..) {
            let claim =
                Claim { token: ClaimToken(Ulid::from_parts(2, token)), now: later, leased_until: later + LEASE };
            let before = table.get_subscription(&stored.account, stored.id).await.unwrap().unwrap();
            let expected = match worker::item_after_take_over(&before, &seen, claim.token, later) {
                Some(held) => ClaimOutcome::Claimed(Box::new(Subscription { version: before.version + 1, ..held })),
                None => ClaimOutcome::Refused(Some(Box::new(before))),
            };
            let claimed =
                table.take_over_attempt(&SubscriptionKey::from_subscription(&stored), &seen, claim).await.unwrap();
            assert_eq!(claimed, expected);
            taken_over += u32::from(matches!(claimed, ClaimOutcome::Claimed(_)));
        }
    }
    assert!(
        held > 20 && refused > 100 && taken_over > 50,
        "{held} claims held, {refused} claims refused, {taken_over} attempts taken over"
    );
}
