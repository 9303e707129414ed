//! Tests of responses about payments: open payments, receipts, due payments and runs.

use billing::{Account, Reversal};
use clock::Clock as _;
use serde_json::Value;
use store::{Batch, Paging, RunRecord};
use testkit::{sample_account, sample_subscription};

use crate::router::world::{NEW_SUBSCRIPTION, World, acme, at};

#[tokio::test]
async fn change_and_cancel_leave_an_open_payment_unchanged() {
    let world = World::new().await;
    let mut open = world.stored_gold().await;
    open.payment_method.payment_method = "pm_usBankAccount_success".parse().unwrap();
    world.table.update_subscription(&world.gold, &open).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    let changed = world.request("PATCH {gold}", r#"{"amount": 1999}"#).await.json();
    assert_eq!((&changed["amount"], &changed["open_payment"]["amount"]), (&1299.into(), &1299.into()), "{changed}");
    let expected_terms = serde_json::json!([{"from": "2026-04", "payment_day": 10, "amount": 1999}]);
    assert_eq!(changed["waiting_terms"], expected_terms, "{changed}");
    let schedule = world.request("GET {gold}/schedule?months=2", "").await.json();
    let amounts: Vec<_> = schedule["data"].as_array().unwrap().iter().map(|row| row["amount"].clone()).collect();
    assert_eq!(amounts, [1299, 1999], "{schedule}");
    let cancelled = world.request("POST {gold}/cancel", "").await.json();
    assert_eq!((&cancelled["status"], &cancelled["next_payment_date"]), (&"cancelled".into(), &"2026-03-10".into()));
    world.run_payments("2026-03-13T06:00:00Z").await;
    let settled = world.request("GET {gold}", "").await.json();
    assert_eq!((&settled["open_payment"], &settled["next_payment_date"]), (&Value::Null, &Value::Null), "{settled}");
    let receipts = world.request("GET /accounts/acme/receipts", "").await.json();
    assert_eq!(
        receipts["data"][0]["amount"], 1299,
        "the open payment has a receipt although the subscription is cancelled: {receipts}"
    );
    for (request, body, detail) in [
        ("POST {gold}/pause", "", "a subscription that is cancelled cannot be paused"),
        ("POST {gold}/resume", "", "a subscription that is cancelled cannot be resumed"),
        ("POST {gold}/uncancel", "", "a subscription that is cancelled cannot be reactivated; create a new one"),
        ("POST {gold}/retry", "", "a subscription that is cancelled cannot be retried"),
        ("PATCH {gold}", r#"{"amount": 1}"#, "a subscription that is cancelled cannot be changed"),
    ] {
        let problem = world.request(request, body).await.problem();
        assert_eq!(problem, format!("409 conflict -: {detail}"), "{request}");
    }
    assert_eq!(world.request("POST {gold}/cancel", "").await.status, 200, "a second cancellation has no effect");
}

#[tokio::test]
async fn get_receipt_returns_json_or_a_web_page_until_the_receipt_expires() {
    let world = World::new().await;
    let account_with_html_name =
        Account { name: "Acme <script>alert(1)</script>".parse().unwrap(), ..sample_account() };
    world.table.put_account(&account_with_html_name).await.unwrap();
    world.run_payments("2026-03-10T06:00:00Z").await;
    let id =
        world.request("GET /accounts/acme/receipts", "").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("GET /accounts/acme/receipts/{id}");
    assert_eq!(world.request(&path, "").await.json()["amount"], 1299);
    let browser = [("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")];
    let page = world.request_as(&acme(), &path, &browser, "").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!((page.header("cache-control"), page.header("vary")), ("no-store", "accept"));
    let policy = page.header("content-security-policy");
    for directive in ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"] {
        assert!(policy.split("; ").any(|part| part == directive), "{policy}");
    }
    insta::assert_snapshot!("receipt", page.text);
    let number = world.request(&path, "").await.json()["number"].as_str().unwrap().to_owned();
    let found = world.request(&format!("GET /receipts/{number}"), "").await;
    assert_eq!((found.status, &found.json()["id"]), (200, &Value::from(id.as_str())), "{}", found.text);
    assert_eq!(world.request("GET /receipts/202603-000000-000000", "").await.status, 404);
    for part in ["<html lang=\"en\">", "€12.99", "Tuesday, March 10, 2026", &number] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    assert!(!page.header("content-security-policy").contains("img-src"), "the page loads nothing");
    assert!(!page.text.contains("Reversed by the bank"));
    let receipt = world.table.get_receipts_by_account(&world.gold.account, &Paging::all(), world.clock.now()).await;
    let receipt = receipt.unwrap().items.remove(0);
    let reversal = Reversal { at: at("2026-03-20T06:00:00Z"), amount: receipt.amount };
    world.table.mark_reversal(&receipt, Some(reversal)).await.unwrap();
    let reversed = world.request(&path, "").await.json();
    let reversal_in_json = (&reversed["reversed_amount"], &reversed["reversed_at"]);
    assert_eq!(reversal_in_json, (&1299.into(), &"2026-03-20T06:00:00Z".into()), "{reversed}");
    let page = world.request_as(&acme(), &path, &browser, "").await;
    assert!(
        page.text.contains("<dt>Reversed by the bank</dt><dd>€12.99, Friday, March 20, 2026</dd>"),
        "{}",
        page.text
    );
    let json = world.request_as(&acme(), &path, &[("accept", "application/json, text/html")], "").await;
    assert_eq!(json.header("content-type"), "application/json");
    world.clock.set(at("2026-09-16T06:00:00Z"));
    assert!(world.request(&path, "").await.problem().starts_with("404 not-found -: there is no such receipt"));
}

#[tokio::test]
async fn due_payments_and_runs_are_listed_page_by_page() {
    let world = World::new().await;
    for day in [7, 8, 9] {
        let other = sample_subscription(day, at("2026-03-01T00:00:00Z").date_naive());
        world.table.create_subscription(&other, None).await.unwrap();
    }
    let (mut dates, mut query) = (Vec::new(), "date=2026-03-09&limit=2".to_owned());
    loop {
        let page = world.request(&format!("GET /due/payments?{query}"), "").await.json();
        dates.extend(page["data"].as_array().unwrap().iter().map(|row| row["date"].as_str().unwrap().to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => query = format!("date=2026-03-09&limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(dates, ["2026-03-07", "2026-03-08", "2026-03-09"]);
    assert_eq!(
        world.request("GET /due/reminders", "").await.json()["data"].as_array().unwrap().len(),
        4,
        "reminders due today"
    );
    world.run_payments("2026-03-09T06:00:00Z").await;
    world.run_payments("2026-03-09T08:00:00Z").await;
    let runs = world.request("GET /runs?date=2026-03-09&limit=1", "").await.json();
    assert_eq!((&runs["data"][0]["counts"]["paid"], &runs["data"][0]["complete"]), (&3.into(), &true.into()), "{runs}");
    let walked =
        |runs: &Value| runs["shards"].as_array().unwrap().iter().map(|s| s["walked"].clone()).collect::<Vec<_>>();
    assert_eq!(walked(&runs), ["missing", "complete"], "{runs}");
    let cursor = runs["next_cursor"].as_str().unwrap();
    let other = world.request(&format!("GET /runs?date=2026-03-09&batch=reminders&cursor={cursor}"), "").await;
    assert!(other.problem().starts_with("422 refused-field cursor: belongs to the other batch"), "{}", other.problem());
    let rest = world.request(&format!("GET /runs?date=2026-03-09&cursor={cursor}"), "").await.json();
    assert_eq!((&rest["data"][0]["counts"]["due"], &rest["next_cursor"]), (&0.into(), &Value::Null), "{rest}");

    // List the runs of both batches. One of the list pages ends exactly with the last run of the first batch.
    for shard in 0..2 {
        let (batch, on, started_at) =
            (Batch::Reminders, at("2026-03-09T00:00:00Z").date_naive(), at("2026-03-09T06:00:00Z"));
        let (id, deadline, shards) = (Default::default(), None, None);
        let run = RunRecord { batch, on, shard, id, started_at, deadline, shards, from: None, end: None };
        world.table.put_run_record(&run).await.unwrap();
    }
    let (mut seen, mut query) = (Vec::new(), String::new());
    loop {
        let page = world.request(&format!("GET /runs?date=2026-03-09&limit=2{query}"), "").await.json();
        let batch = |run: &Value| run["batch"].as_str().unwrap().to_owned();
        seen.push(page["data"].as_array().unwrap().iter().map(batch).collect::<Vec<_>>());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("&cursor={cursor}");
    }
    // The payment batch ran twice. Each of its runs writes one run record for the due payments and one for the open
    // attempts, so the payment batch has four run records.
    assert_eq!(seen, [["reminders", "reminders"], ["payments", "payments"], ["payments", "payments"]]);
}

#[tokio::test]
async fn today_is_the_day_in_the_billing_time_zone() {
    let world = World::in_zone("Pacific/Auckland").await;
    // The clock shows 5 March in UTC, but in Auckland it is already 6 March.
    let due = world.request("GET /due/payments", "").await.json();
    assert_eq!(due["date"], "2026-03-06", "{due}");
    let new =
        NEW_SUBSCRIPTION.replace("\"first_payment_date\":\"2026-03-10\"", "\"first_payment_date\":\"2026-03-05\"");
    let new = new.replace("\"payment_day\":10", "\"payment_day\":5");
    let refused = world.request("POST /accounts/acme/subscriptions", &new).await.problem();
    assert!(refused.contains("must not be before 2026-03-06"), "{refused}");
}
