//! Checks the responses and the stored result of a measurement. Without these checks, a server that skips a part of the
//! work would only look faster.

use billing::{AccountId, Receipt, ReceiptNumber, Status, Subscription};
use reqwest::StatusCode;
use serde_json::Value;
use store::{Paging, Table};

use super::load::Response;
use super::request::{
    AMOUNT, BenchmarkLoad, CHANGED_AMOUNT, CHANGED_NAME, Kind, LISTED_RECEIPTS, LISTED_SUBSCRIPTIONS,
};
use super::world::World;
use crate::Failure;
use crate::contestant::charge_count;

/// Checks `responses`, the responses to all requests of `set`, and the items that these requests have written.
///
/// # Errors
/// If a response is wrong, or the table or the gateway does not contain the expected result.
pub async fn check<'a>(
    world: &World,
    set: &BenchmarkLoad,
    responses: impl Iterator<Item = &'a (usize, Response)>,
) -> Result<(), Failure> {
    let mut count = 0;
    for (_, response) in responses {
        check_response(set.kind, response)
            .map_err(|reason| format!("{reason}: {} {}", response.status, response.body))?;
        count += 1;
    }
    check_count("responses", count, set.count)?;
    let subscriptions = subscriptions_of(&world.table, set).await?;
    let is_expected = |stored: &&Subscription| match set.kind {
        Kind::Create => is_new(stored) && stored.price.minor() == AMOUNT,
        Kind::Change => {
            (stored.version, stored.price.minor(), stored.product_name.as_str()) == (2, CHANGED_AMOUNT, CHANGED_NAME)
        }
        Kind::SignUp => is_settled(stored, world),
        // Requests that only read must not change the subscription.
        Kind::List | Kind::Receipts => is_new(stored),
    };
    let written = match set.kind {
        Kind::Create | Kind::Change | Kind::SignUp => set.count,
        Kind::List => set.accounts().len() * LISTED_SUBSCRIPTIONS,
        Kind::Receipts => set.accounts().len() * 2,
    };
    check_count("subscriptions", subscriptions.len(), written)?;
    check_count("subscriptions with the expected content", subscriptions.iter().filter(is_expected).count(), written)?;
    if set.kind == Kind::SignUp {
        let receipts = receipts_of(world, set).await?;
        let is_paid = |receipt: &&Receipt| receipt.amount.minor() == AMOUNT && receipt.due_on == world.today;
        check_count("receipts", receipts.iter().filter(is_paid).count(), set.count)?;
        let stored = world.table.get_charge_total(world.today).await?.charges();
        let charged = charge_count(&world.gateway.1).await?;
        check_count("charges in the total of the day", usize::try_from(stored)?, usize::try_from(charged)?)?;
    }
    Ok(())
}

/// Returns the subscriptions of all accounts of `set`.
async fn subscriptions_of(table: &Table, set: &BenchmarkLoad) -> Result<Vec<Subscription>, Failure> {
    let mut all = Vec::new();
    for account in set.accounts() {
        all.extend(table.get_subscriptions_by_account(&account, &Paging::all()).await?.into_items()?);
    }
    Ok(all)
}

/// Returns the receipts of all accounts of `set`.
async fn receipts_of(world: &World, set: &BenchmarkLoad) -> Result<Vec<Receipt>, Failure> {
    let mut all = Vec::new();
    for account in set.accounts() {
        let page = world.table.get_receipts_by_account(&account, &Paging::all(), chrono::Utc::now()).await?;
        all.extend(page.into_items()?);
    }
    Ok(all)
}

/// Returns whether `stored` was created and not changed since.
fn is_new(stored: &Subscription) -> bool {
    stored.version == 1 && stored.status == Status::Active && stored.next_payment_on == Some(stored.due_on)
}

/// Returns whether the first payment of `stored` was charged today with one attempt, and the result of the attempt is
/// stored.
fn is_settled(stored: &Subscription, world: &World) -> bool {
    stored.attempt.is_none()
        && (stored.version, stored.attempt_seq) == (3, 1)
        && stored.last_payment_at.is_some()
        && stored.first_due_on == world.today
        && stored.due_on > world.today
        && stored.next_payment_on == Some(stored.due_on)
}

/// Checks the response to a request of `kind`. Returns the reason if the response is wrong.
fn check_response(kind: Kind, response: &Response) -> Result<(), &'static str> {
    let body = &response.body;
    let (expected, is_complete) = match kind {
        Kind::Create => (StatusCode::CREATED, body["version"] == 1 && body["amount"] == AMOUNT),
        Kind::Change => (StatusCode::OK, body["version"] == 2 && body["amount"] == CHANGED_AMOUNT),
        Kind::List => (StatusCode::OK, has_items(body, LISTED_SUBSCRIPTIONS) && body["data"][0]["version"] == 1),
        Kind::Receipts => (
            StatusCode::OK,
            has_items(body, LISTED_RECEIPTS)
                && body["data"].as_array().is_some_and(|receipts| receipts.iter().all(has_correct_number)),
        ),
        Kind::SignUp => (StatusCode::CREATED, body["payment"] == "paid" && has_correct_number(&body["receipt"])),
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
fn check_count(things: &str, found: usize, expected: usize) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { Err(format!("{found} {things} instead of {expected}").into()) }
}
