//! Checks that all servers do the same work: they respond alike to the same requests, send the same kinds and numbers
//! of requests to DynamoDB and to the gateway, and store the same items.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use billing::Account;
use chrono::Utc;
use serde_json::{Map, Value, json};
use testkit::sample_account;

use super::cases::{EXISTING_ACCOUNT, EXISTING_SUBSCRIPTION, compared_requests, first_sign_up};
use super::contestant::ApiContestant;
use super::load::{self, ServerResponse};
use super::normalized::KnownIds;
use super::world::{BenchmarkWorld, new_subscription};
use crate::Failure;
use crate::engine::{TABLE, create_numbered_ulid};
use crate::recorder::{RecordedRequest, RequestRecorder};

/// The response of a server to one request, and the requests that the server sent because of it.
#[derive(Clone, PartialEq, Debug)]
struct ObservedResponse {
    status: u16,
    /// The headers `ETag` and `Idempotent-Replayed`.
    headers: [Option<String>; 2],
    /// The body of a successful response; the kind and the field of a problem.
    body: Value,
    /// The requests to DynamoDB and to the gateway, sorted; empty for a refused request, which a server may refuse
    /// before or after it has read the table.
    requests: Vec<String>,
}

impl fmt::Display for ObservedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, headers, body, requests } = self;
        write!(f, "{status} {headers:?} {body} after {requests:?}")
    }
}

/// The observed responses of one server to all requests, and the items in the server's table after the last request.
struct ObservedRun {
    responses: Vec<ObservedResponse>,
    items: Vec<Value>,
}

/// Sends all requests of [`compared_requests`] to each server in `contestants`, and checks that each server does the
/// same as the first server. Returns the number of requests.
///
/// # Errors
/// If a server responds in another way than the first server, or stores other items. The error contains the
/// differences.
pub async fn check_servers_agree(contestants: &[ApiContestant], javascript_server: &Path) -> Result<usize, Failure> {
    let Some((first, others)) = contestants.split_first() else { return Ok(0) };
    let expected = observe_server(*first, javascript_server).await?;
    for other in others {
        let found = observe_server(*other, javascript_server).await?;
        let (first, other) = (first.name(), other.name());
        let cases = compared_requests(Utc::now().date_naive());
        let cases = cases.iter().zip(expected.responses.iter().zip(&found.responses));
        let differences = cases.filter(|(_, (expected, found))| expected != found);
        let differences: Vec<String> = differences
            .map(|(case, (expected, found))| format!("{case:?}\n{first}: {expected}\n{other}: {found}"))
            .collect();
        if !differences.is_empty() {
            return Err(format!("the servers do not respond alike\n{}", differences.join("\n")).into());
        }
        let is_missing = |item: &&Value| !found.items.contains(item);
        let is_other = |item: &&Value| !expected.items.contains(item);
        let missing: Vec<_> = expected.items.iter().filter(is_missing).collect();
        let added: Vec<_> = found.items.iter().filter(is_other).collect();
        if found.items != expected.items {
            return Err(format!("{other} stored other items\nmissing: {missing:#?}\nadditional: {added:#?}").into());
        }
    }
    Ok(expected.responses.len())
}

/// Sends all requests to a new server of `contestant`, one after the other. Returns the responses and the stored items.
async fn observe_server(contestant: ApiContestant, javascript_server: &Path) -> Result<ObservedRun, Failure> {
    let world = BenchmarkWorld::start().await?;
    for id in [EXISTING_ACCOUNT, "other"] {
        world.table.put_account(&Account { id: id.parse()?, ..sample_account() }).await?;
    }
    let subscription = new_subscription(EXISTING_ACCOUNT, EXISTING_SUBSCRIPTION.parse()?, world.today);
    world.create_subscription(&subscription).await?;
    world.create_receipts(&subscription).await?;
    if let Some(id) = world.table.dynamodb_id().await? {
        world.table.init_dynamodb_id(&id).await?;
    }
    let known = KnownIds(BTreeSet::from([EXISTING_SUBSCRIPTION.to_owned(), create_numbered_ulid(0).to_string()]));

    let recorder = RequestRecorder::default();
    let engine = recorder.start_proxy(&world.engine.1, false).await?;
    let gateway = recorder.start_proxy(&world.gateway.1, true).await?;
    let (server, url) = contestant.start(javascript_server, &engine, &gateway).await?;
    let (http, mut responses) = (load::create_client()?, Vec::new());
    // With the first sign-up, Dueday also checks once that the table is not a copy that was restored from a backup. So
    // this request is not compared.
    load::send_request(&http, &url, &first_sign_up(world.today)).await?;
    recorder.take_requests();
    for case in compared_requests(world.today) {
        let response = load::send_request(&http, &url, &case).await?;
        let mut requests: Vec<String> = recorder.take_requests().iter().map(describe_request).collect();
        requests.sort_unstable();
        responses.push(observe_response(&known, response, requests));
    }
    server.stop().await?;
    let items = read_stored_items(&world, &known).await?;
    world.stop().await?;
    Ok(ObservedRun { responses, items })
}

/// Returns the parts of `response` that must be equal for all servers, with placeholders for new ids and times.
fn observe_response(known: &KnownIds, response: ServerResponse, requests: Vec<String>) -> ObservedResponse {
    let requests = if response.status.is_success() { requests } else { Vec::new() };
    let header = |name: &str| response.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let headers = [header("etag"), header("idempotent-replayed")];
    let body = match response.status.is_success() {
        true => known.normalize(response.body),
        false => json!({ "type": response.body["type"], "field": response.body["field"] }),
    };
    ObservedResponse { status: response.status.as_u16(), headers, body, requests }
}

/// Describes a request so that equal requests of different servers get the same text: the DynamoDB operation with its
/// writes and conditions, or the method, the path and the names of the fields.
fn describe_request(request: &RecordedRequest) -> String {
    let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
    if request.is_charge {
        let fields: Vec<&str> = body.as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect();
        return format!("{} {} {}", request.method, request.path, fields.join(" "));
    }
    let mut parts = vec![describe_write(request.operation(), &body)];
    if body["ConsistentRead"] == true {
        parts.push("with a consistent read".to_owned());
    }
    let writes = body["TransactItems"].as_array().into_iter().flatten().filter_map(Value::as_object).flatten();
    parts.extend(writes.map(|(kind, write)| describe_write(kind, write)));
    parts.join(" ")
}

/// Returns the kind of a write, with the suffix `-if` if the write has a condition.
fn describe_write(kind: &str, write: &Value) -> String {
    let condition = if write["ConditionExpression"].is_string() { "-if" } else { "" };
    format!("{kind}{condition}")
}

/// Returns all items of the server's table, sorted, with placeholders for the values that differ in each run.
async fn read_stored_items(world: &BenchmarkWorld, known: &KnownIds) -> Result<Vec<Value>, Failure> {
    let scan = json!({ "TableName": TABLE, "ConsistentRead": true }).to_string();
    let request =
        reqwest::Client::new().post(&world.engine.1).header("x-amz-target", "DynamoDB_20120810.Scan").body(scan);
    let response: Value = request.send().await?.json().await?;
    let now = Utc::now();
    let items = response["Items"].as_array().ok_or("the engine returned no items")?;
    let items =
        items.iter().filter_map(Value::as_object).map(|item: &Map<_, _>| known.normalize_item(item.clone(), now));
    let mut items: Vec<Value> = items.collect();
    items.sort_by_key(Value::to_string);
    Ok(items)
}
