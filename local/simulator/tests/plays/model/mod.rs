//! The protocol, explored exhaustively: workers that may end anywhere, leases that lapse, keys that are forgotten,
//! requests that arrive late, an index that shows what was, and a customer. Every state within the bounds is visited.

mod customer;
mod flaw;
mod gateway;
mod invariants;
mod life;
mod worker;

use std::collections::{HashSet, VecDeque};

use billing::{Account, Attempt, CatchUp, Policy, Subscription, Token};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use customer::Act;
use emulator::Engine;
use flaw::Flaw;
use gateway::Reason::{DeclinesHard, DeclinesSoftly, Processes, Rejects, Succeeds};
use invariants::{KEPT, ONCE, SETTLED, STOPPED};
use life::{LEASE, Life, instants};
use stateright::{Checker, HasDiscoveries, Model};
use store::{Claim, Claimed, SubscriptionKey, Table};
use testkit::sample;
use ulid::Ulid;

/// The way to a state in which an invariant does not hold, for each that can be broken.
fn broken(checker: &impl Checker<Life>) -> String {
    let mut text = String::new();
    for (invariant, path) in checker.discoveries() {
        text += &format!("\n{invariant}, but:\n");
        path.into_actions().iter().for_each(|action| text += &format!("    {action:?}\n"));
    }
    text
}

/// Visits every state; there are more than `states`.
fn explore(life: Life, states: usize) {
    let checker = life.checker().threads(2).spawn_bfs().join();
    assert_eq!(broken(&checker), "");
    assert!(checker.unique_state_count() > states, "only {} states", checker.unique_state_count());
}

#[test]
fn charging_by_two_workers_doubles_and_loses_nothing_whatever_the_gateway_answers() {
    for (other, states) in [(DeclinesSoftly, 200_000), (DeclinesHard, 50_000), (Rejects, 50_000), (Processes, 100_000)]
    {
        explore(Life { verdicts: vec![Succeeds, other], ..Life::new() }, states);
    }
}

#[test]
fn charging_after_the_lease_has_lapsed_is_harmless_while_the_idempotency_key_lives() {
    explore(Life { max_delay: TimeDelta::hours(23), ..Life::new() }, 200_000);
}

#[test]
fn charging_by_two_workers_is_safe_whenever_the_customer_acts() {
    let a_day = instants(&["2026-01-31T06:00:00Z", "2026-01-31T06:30:00Z", "2026-02-01T07:00:00Z"]);
    let life = Life { instants: a_day, verdicts: vec![Succeeds], acts: Act::ALL.to_vec(), max_acts: 1, ..Life::new() };
    explore(life, 100_000);
}

#[test]
fn charging_is_safe_when_the_customer_acts_repeatedly() {
    let life = Life { workers: 1, acts: Act::ALL.to_vec(), max_acts: 2, ..Life::new() };
    // From the day before on: it is paused only while nothing is owed.
    let days = ["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z", "2026-01-31T06:30:00Z", "2026-02-01T07:00:00Z"];
    explore(Life { instants: instants(&days), ..life.clone() }, 90_000);
    let months = ["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z", "2026-01-31T06:30:00Z", "2026-03-15T07:00:00Z"];
    explore(Life { instants: instants(&months), verdicts: vec![Succeeds, DeclinesHard], ..life }, 90_000);
}

#[test]
fn catching_up_after_an_outage_of_months_doubles_and_loses_nothing() {
    let months = ["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z", "2026-03-31T06:00:00Z", "2026-04-01T07:00:00Z"];
    let acts = vec![Act::Pause, Act::Resume, Act::CancelAtPeriodEnd, Act::NewDay];
    for catch_up in [CatchUp::Each, CatchUp::Latest] {
        let policy = Policy { catch_up, ..Life::new().policy };
        let life =
            Life { instants: instants(&months), policy, workers: 1, acts: acts.clone(), max_acts: 2, ..Life::new() };
        explore(life, 30_000);
    }
}

#[test]
fn leaving_out_any_rule_doubles_or_loses_a_charge() {
    for (flaw, other, act, found) in [
        (Flaw::NoClaim, None, None, ONCE),
        (Flaw::NoLookUp, None, None, ONCE),
        (Flaw::NewKeyInDoubt, None, None, ONCE),
        (Flaw::ClaimProvedByRun, None, None, ONCE),
        (Flaw::TakeOverRewritesAttemptAt, None, None, ONCE),
        (Flaw::SettleUnconditionally, Some(DeclinesSoftly), None, ONCE),
        (Flaw::SettleIgnoresStatus, Some(DeclinesSoftly), Some(Act::Cancel), STOPPED),
        (Flaw::NumberResetByCard, Some(DeclinesSoftly), Some(Act::NewCard), SETTLED),
        (Flaw::DeclineNotCancelled, Some(DeclinesSoftly), None, ONCE),
        (Flaw::CancelledLeavesIndex, None, Some(Act::Cancel), SETTLED),
        (Flaw::RejectedByAnyone, Some(Rejects), None, ONCE),
    ] {
        let verdicts = [Succeeds].into_iter().chain(other).collect();
        let life = Life { verdicts, acts: act.into_iter().collect(), max_acts: 1, flaw, ..Life::new() };
        assert_breaks(life, found);
    }
    // A customer who ends it the day before.
    let eve = instants(&["2026-01-30T06:00:00Z", "2026-01-31T06:00:00Z"]);
    let life = Life { instants: eve, acts: vec![Act::CancelAtPeriodEnd], max_acts: 1, ..Life::new() };
    assert_breaks(Life { flaw: Flaw::ClaimsTheEnding, ..life }, STOPPED);
    // A worker that sleeps between its take-over and its look-up.
    let life = Life { verdicts: vec![Succeeds], acts: vec![Act::Cancel], max_acts: 1, ..Life::new() };
    let slept = ["2026-01-31T06:00:00Z", "2026-01-31T06:21:00Z", "2026-01-31T06:39:00Z", "2026-01-31T06:42:00Z"];
    assert_breaks(Life { instants: instants(&slept), flaw: Flaw::AllowedByLookUp, ..life.clone() }, KEPT);
    explore(Life { instants: instants(&slept), ..life }, 20_000);
}

/// Finds a way to a state in which `invariant` does not hold.
fn assert_breaks(life: Life, invariant: &'static str) {
    let (flaw, is_found) = (life.flaw, HasDiscoveries::AnyOf([invariant].into()));
    let checker = life.checker().threads(2).finish_when(is_found).spawn_bfs().join();
    let states = checker.unique_state_count();
    assert!(checker.discovery(invariant).is_some(), "{flaw:?}: in {states} states {invariant}");
}

#[test]
fn charging_permission_lapses_within_the_lease_with_time_for_a_slow_request() {
    let minutes = ["2026-01-31T06:00:00Z", "2026-01-31T06:04:00Z", "2026-01-31T06:12:00Z", "2026-01-31T06:21:00Z"];
    let life = Life { instants: instants(&minutes), verdicts: vec![Succeeds, Rejects], ..Life::new() };
    explore(Life { acts: vec![Act::Cancel], max_acts: 1, ..life }, 5_000);
}

/// Different subscriptions as they are stored on the way, and a date that the index shows of each.
fn stored_on_the_way(life: &Life, count: usize) -> Vec<(Subscription, NaiveDate, DateTime<Utc>)> {
    let (mut ahead, mut seen) = (VecDeque::from(life.init_states()), HashSet::new());
    let (mut stored, mut found) = (HashSet::new(), Vec::new());
    while let Some(state) = ahead.pop_front().filter(|_| found.len() < count) {
        if stored.insert(state.stored.clone()) {
            found.extend(state.shown.iter().map(|shown| (state.stored.clone(), *shown, state.now)));
        }
        ahead.extend(life.next_states(&state).into_iter().filter(|next| seen.insert(next.clone())));
    }
    found
}

#[tokio::test]
async fn claiming_and_taking_over_in_the_model_equal_the_tables() {
    let life = Life { workers: 1, acts: Act::ALL.to_vec(), max_acts: 2, ..Life::new() };
    let table = Table::new(Engine::memory().client(), "dueday", TimeDelta::days(190));
    table.create_if_absent().await.unwrap();
    let (mut held, mut refused, mut taken_over) = (0, 0, 0);
    for (n, (stored, shown, now)) in stored_on_the_way(&life, 400).into_iter().enumerate() {
        let account = Account { id: format!("account-{n}").parse().unwrap(), ..sample::account() };
        let stored = Subscription { account: account.id.clone(), ..stored };
        table.put_account(&account).await.unwrap();
        table.create_subscription(&stored, None).await.unwrap();
        let claim = Claim { token: Token(Ulid::from_parts(1, 1)), now, leased_until: now + LEASE };
        let claimed = table.claim_payment(&SubscriptionKey::of(&stored), shown, Ulid::nil(), claim).await.unwrap();
        let expected = match worker::claimed(&stored, shown, claim.token, now) {
            Some(open) => Claimed::Held(Box::new(Subscription { version: stored.version + 1, ..open })),
            None => Claimed::Refused(Some(Box::new(stored))),
        };
        assert_eq!(claimed, expected, "shown as due on {shown}");
        *(if matches!(claimed, Claimed::Held(_)) { &mut held } else { &mut refused }) += 1;

        let (Claimed::Held(stored) | Claimed::Refused(Some(stored))) = claimed else { continue };
        let Some(open) = stored.attempt.clone() else { continue };
        let later = open.leased_until;
        // As it was under another lease, as it is, and as it is no more. A token is new for every claim.
        let seen = [Attempt { leased_until: later + LEASE, ..open.clone() }, open.clone(), open];
        for (seen, token) in seen.into_iter().zip(2..) {
            let claim = Claim { token: Token(Ulid::from_parts(2, token)), now: later, leased_until: later + LEASE };
            let before = table.get_subscription(&stored.account, stored.id).await.unwrap().unwrap();
            let expected = match worker::taken_over(&before, &seen, claim.token, later) {
                Some(held) => Claimed::Held(Box::new(Subscription { version: before.version + 1, ..held })),
                None => Claimed::Refused(Some(Box::new(before))),
            };
            let claimed = table.take_over(&SubscriptionKey::of(&stored), &seen, claim).await.unwrap();
            assert_eq!(claimed, expected);
            taken_over += u32::from(matches!(claimed, Claimed::Held(_)));
        }
    }
    assert!(held > 20 && refused > 100 && taken_over > 50, "{held} held, {refused} refused, {taken_over} taken over");
}
