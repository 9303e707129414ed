//! Checks the responses and the stored result of a measurement. Without these checks, a server that skips a part of the
//! work would only look faster.

use billing::{AccountId, Receipt, ReceiptNumber, Subscription, SubscriptionStatus};
use reqwest::StatusCode;
use serde_json::Value;
use store::{Paging, Table};

use super::load::ServerResponse;
use super::request::{
    AMOUNT, BenchmarkLoad, CHANGED_AMOUNT, CHANGED_NAME, LISTED_RECEIPTS, LISTED_SUBSCRIPTIONS, RequestKind,
};
use super::world::BenchmarkWorld;
use crate::Failure;
use crate::contestant::fetch_charge_count;

/// Checks `responses`, the responses to all requests of `set`, and the items that these requests have written.
///
/// # Errors
/// If a response is wrong, or the table or the gateway does not contain the expected result.
pub async fn check_responses_and_stored_items<'a>(
    world: &BenchmarkWorld,
    set: &BenchmarkLoad,
    responses: impl Iterator<Item = &'a (usize, ServerResponse)>,
) -> Result<(), Failure> {
    let mut count = 0;
    for (_, response) in responses {
        check_response(set.kind, response)
            .map_err(|reason| format!("{reason}: {} {}", response.status, response.body))?;
        count += 1;
    }
    check_number_found("responses", count, set.count)?;
    let subscriptions = read_subscriptions_of_load(&world.table, set).await?;
    let is_expected = |stored: &&Subscription| match set.kind {
        RequestKind::Create => is_unchanged_since_creation(stored) && stored.price.minor() == AMOUNT,
        RequestKind::Change => {
            (stored.version, stored.price.minor(), stored.product_name.as_str()) == (2, CHANGED_AMOUNT, CHANGED_NAME)
        }
        RequestKind::SignUp => is_first_payment_settled(stored, world),
        // Requests that only read must not change the subscription.
        RequestKind::List | RequestKind::Receipts => is_unchanged_since_creation(stored),
    };
    let written = match set.kind {
        RequestKind::Create | RequestKind::Change | RequestKind::SignUp => set.count,
        RequestKind::List => set.account_ids().len() * LISTED_SUBSCRIPTIONS,
        RequestKind::Receipts => set.account_ids().len() * 2,
    };
    check_number_found("subscriptions", subscriptions.len(), written)?;
    check_number_found(
        "subscriptions with the expected content",
        subscriptions.iter().filter(is_expected).count(),
        written,
    )?;
    if set.kind == RequestKind::SignUp {
        let receipts = read_receipts_of_load(world, set).await?;
        let is_paid = |receipt: &&Receipt| receipt.amount.minor() == AMOUNT && receipt.due_on == world.today;
        check_number_found("receipts", receipts.iter().filter(is_paid).count(), set.count)?;
        let stored = world.table.get_charge_total(world.today).await?.charges();
        let charged = fetch_charge_count(&world.gateway.1).await?;
        check_number_found("charges in the total of the day", usize::try_from(stored)?, usize::try_from(charged)?)?;
    }
    Ok(())
}

/// Returns the subscriptions of all accounts of `set`.
async fn read_subscriptions_of_load(table: &Table, set: &BenchmarkLoad) -> Result<Vec<Subscription>, Failure> {
    let mut all = Vec::new();
    for account in set.account_ids() {
        all.extend(table.get_subscriptions_by_account(&account, &Paging::all()).await?.into_items()?);
    }
    Ok(all)
}

/// Returns the receipts of all accounts of `set`.
async fn read_receipts_of_load(world: &BenchmarkWorld, set: &BenchmarkLoad) -> Result<Vec<Receipt>, Failure> {
    let mut all = Vec::new();
    for account in set.account_ids() {
        let page = world.table.get_receipts_by_account(&account, &Paging::all(), chrono::Utc::now()).await?;
        all.extend(page.into_items()?);
    }
    Ok(all)
}

/// Returns whether `stored` was created and not changed since.
fn is_unchanged_since_creation(stored: &Subscription) -> bool {
    stored.version == 1 && stored.status == SubscriptionStatus::Active && stored.next_payment_on == Some(stored.due_on)
}

/// Returns whether the first payment of `stored` was charged today with one attempt, and the result of the attempt is
/// stored.
fn is_first_payment_settled(stored: &Subscription, world: &BenchmarkWorld) -> bool {
    stored.attempt.is_none()
        && (stored.version, stored.attempt_seq) == (3, 1)
        && stored.last_payment_at.is_some()
        && stored.first_due_on == world.today
        && stored.due_on > world.today
        && stored.next_payment_on == Some(stored.due_on)
}

/// Checks the response to a request of `kind`. Returns the reason if the response is wrong.
fn check_response(kind: RequestKind, response: &ServerResponse) -> Result<(), &'static str> {
    let body = &response.body;
    let (expected, is_complete) = match kind {
        RequestKind::Create => (StatusCode::CREATED, body["version"] == 1 && body["amount"] == AMOUNT),
        RequestKind::Change => (StatusCode::OK, body["version"] == 2 && body["amount"] == CHANGED_AMOUNT),
        RequestKind::List => (StatusCode::OK, has_items(body, LISTED_SUBSCRIPTIONS) && body["data"][0]["version"] == 1),
        RequestKind::Receipts => (
            StatusCode::OK,
            has_items(body, LISTED_RECEIPTS)
                && body["data"].as_array().is_some_and(|receipts| receipts.iter().all(has_correct_number)),
        ),
        RequestKind::SignUp => (StatusCode::CREATED, body["payment"] == "paid" && has_correct_number(&body["receipt"])),
    };
    match () {
        () if response.status != expected => Err("a response has another status"),
        () if !is_complete => Err("a response has other content"),
        () => Ok(()),
    }
}

/// Returns whether the list page `list` contains `count` items and is the last page.
fn has_items(list: &Value, count: usize) -> bool {
    list["data"].as_array().is_some_and(|items| items.len() == count) && list["next_cursor"].is_null()
}

/// Returns whether `receipt` has the number that its account, subscription and due date determine.
pub fn has_correct_number(receipt: &Value) -> bool {
    let text = |name: &str| receipt[name].as_str().unwrap_or_default();
    let number = || {
        let account: AccountId = text("account").parse().ok()?;
        Some(ReceiptNumber::new(&account, text("subscription").parse().ok()?, text("due_date").parse().ok()?))
    };
    number().is_some_and(|number| number.to_string() == text("number"))
}

/// Checks that `found`, the number of `things`, is `expected`.
fn check_number_found(things: &str, found: usize, expected: usize) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { Err(format!("{found} {things} instead of {expected}").into()) }
}
