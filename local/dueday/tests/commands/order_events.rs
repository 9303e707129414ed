//! Tests of the events and mails of orders in a local installation, with and without a server.

use crate::orders::import_places;
use crate::process::wait_for;
use crate::server::Server;
use crate::terminal;

use std::path::Path;

use chrono::Utc;
use serde_json::{Value, json};
use terminal::{dueday, output};

/// The content of a file for `dueday orders import`: a stock with enough beans for one order.
const STOCK: &str = "\
product,name,sku,quantity,warehouse,region,stock
beans,House Blend 1 kg,gold,2,ams,eu,3
";

/// Runs `dueday` with `arguments`, and asserts that it succeeds. Returns its output.
fn run(data: &Path, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = output(dueday(data).args(arguments));
    assert_eq!(code, 0, "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// Returns the type and the data of each stored event about an order of `account`, in the sequence of publication.
fn order_events(data: &Path, account: &str) -> Vec<(String, Value)> {
    let events = run(data, &["events", "--json", "--account", account]);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events = events.filter(|event| event["type"].as_str().unwrap().starts_with("order."));
    events.map(|mut event| (event["type"].as_str().unwrap().to_owned(), event["data"].take())).collect()
}

/// Returns the types of `events`.
fn event_types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(event_type, _)| event_type.as_str()).collect()
}

/// Returns the texts of the mails in the outbox whose file names contain `kind`, such as `shipped`.
fn mails_of_kind(data: &Path, kind: &str) -> Vec<String> {
    let files = std::fs::read_dir(data.join("outbox")).unwrap().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.to_str().is_some_and(|path| path.contains(kind) && path.ends_with(".eml")));
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// Imports one subscription of `gold` for each of two accounts, charges the subscriptions today, and imports the stock.
/// Returns the data folder.
fn folder_with_orders(folder: &Path) -> std::path::PathBuf {
    let (data, csv, stock) = (folder.join("data"), folder.join("s.csv"), folder.join("stock.csv"));
    let today = Utc::now().date_naive();
    let row = |account: &str, locale: &str| {
        let day = today.format("%-d");
        format!(
            "{account},{account}@example.com,{account},{locale},1,gold,Gold plan,{day},12.99,EUR,cus,pm_card_visa,{today}\n"
        )
    };
    let head = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n";
    std::fs::write(&csv, head.to_owned() + &row("acme", "de") + &row("bell", "en")).unwrap();
    std::fs::write(&stock, STOCK).unwrap();
    run(&data, &["import", csv.to_str().unwrap()]);
    run(&data, &["run", "payments"]);
    import_places(folder, &data);
    run(&data, &["orders", "import", stock.to_str().unwrap()]);
    data
}

/// Sets the shipping address of the customer `account`.
fn set_address(data: &Path, account: &str) {
    let address = ["--name", account, "--street", "1 High Street", "--postal-code", "LS1", "--city", "Leeds"];
    let place = ["--country", "gb", "--region", "eu"];
    run(data, &[&["orders", "address", account][..], &address, &place].concat());
}

#[test]
fn commands_publish_the_events_of_their_orders_and_mail_the_shipment_in_the_language_of_the_customer() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_orders(folder.path());
    assert_eq!(event_types(&order_events(&data, "acme")), ["order.placed", "order.backordered"]);
    set_address(&data, "acme");
    set_address(&data, "bell");
    let acme = order_events(&data, "acme");
    assert_eq!(event_types(&acme), ["order.placed", "order.backordered", "order.filled"]);
    let order = acme[0].1["order"].as_str().unwrap().to_owned();
    let lines = json!([{ "product": "beans", "quantity": 2 }]);
    assert_eq!((&acme[0].1["lines"], &acme[1].1["waits_for"]), (&lines, &json!("address")));
    assert_eq!((&acme[2].1["status"], &acme[2].1["warehouse"]), (&json!("OPEN"), &json!("ams")));
    let bell = order_events(&data, "bell");
    assert_eq!(event_types(&bell), ["order.placed", "order.backordered", "order.backordered"]);
    let missing = json!([{ "product": "beans", "quantity": 1 }]);
    assert_eq!((&bell[2].1["waits_for"], &bell[2].1["missing"]), (&json!("stock"), &missing));
    let listed = run(&data, &["events", "--account", "bell", "--type", "order.backordered"]);
    assert!(listed.contains("waits for stock: 1 beans missing"), "{listed}");

    run(&data, &["orders", "pick", &order]);
    assert_eq!(mails_of_kind(&data, "shipped"), Vec::<String>::new());
    let ship = ["orders", "ship", &order, "--carrier", "An Post", "--tracking-number", "RR123456785IE"];
    run(&data, &ship);
    let sent = mails_of_kind(&data, "shipped");
    let [mail] = sent.as_slice() else { panic!("the command sends one mail, not {}", sent.len()) };
    assert!(mail.contains("To: acme@example.com"), "{mail}");
    let text = mail.replace("=\r\n", "").replace("=C3=BC", "ü");
    for part in ["Bestellnummer: ", &order, "Paketdienst: An Post", "Sendungsnummer: RR123456785IE"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    // A repeated command changes nothing.
    run(&data, &ship);
    run(&data, &["orders", "deliver", &order]);
    run(&data, &["orders", "return", &order]);
    let acme = order_events(&data, "acme");
    let expected =
        ["order.placed", "order.backordered", "order.filled", "order.shipped", "order.delivered", "order.returned"];
    assert_eq!(event_types(&acme), expected);
    assert_eq!((&acme[3].1["carrier"], &acme[3].1["tracking_number"]), (&json!("An Post"), &json!("RR123456785IE")));
    assert_eq!(mails_of_kind(&data, "shipped").len(), 1);
    let all = run(&data, &["events", "--json"]);
    let of_orders = all.lines().filter(|line| line.contains("\"type\":\"order."));
    assert!(of_orders.clone().count() > 0);
    for line in of_orders {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["source"].as_str().unwrap().ends_with(":table/dueday-orders"), "{event}");
        assert!(!line.contains("High Street") && !line.contains('@'), "{event}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn request_to_ship_an_order_is_published_and_mailed_by_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_orders(folder.path());
    set_address(&data, "bell");
    let order = order_events(&data, "bell")[0].1["order"].as_str().unwrap().to_owned();
    let mut server = Server::start(&data, &[]);

    let client = reqwest::Client::new();
    for (step, body) in [("pick", json!({})), ("ship", json!({ "carrier": "An Post" }))] {
        let response =
            client.post(format!("{}/orders/{order}/{step}", server.api_url)).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{step}");
    }
    // The server publishes the change and sends the mail within seconds.
    let shipped = wait_for("the event of the shipment", async || {
        assert!(!server.process.has_ended(), "the server has ended");
        let events = order_events(&data, "bell");
        events.into_iter().find_map(|(event_type, data)| (event_type == "order.shipped").then_some(data))
    })
    .await;
    assert_eq!((&shipped["order"], &shipped["carrier"]), (&json!(order), &json!("An Post")));
    let sent = wait_for("the mail about the shipment", async || {
        assert!(!server.process.has_ended(), "the server has ended");
        Some(mails_of_kind(&data, "shipped")).filter(|sent| !sent.is_empty())
    })
    .await;
    assert!(sent[0].contains("Carrier: An Post") && !sent[0].contains("Tracking number"), "{}", sent[0]);
}
