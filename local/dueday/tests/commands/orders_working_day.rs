//! A test of a working day in a warehouse, through the API and the commands: 110 paid months become orders, a delivery
//! arrives, orders are picked, shipped and returned, and stock is counted, written off and moved. At the end, the stock
//! must match the stock movements, the orders and the events.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{Datelike as _, Utc};
use serde_json::{Value, json};

use crate::orders::import_places;
use crate::server::{ApiClient, Server};
use crate::terminal::{dueday, output};

/// The number of orders that the payments of the day place.
const ORDER_COUNT: usize = 110;
/// The number of orders that are shipped.
const SHIPPED_COUNT: usize = 100;
/// The number of shipped orders that customers return.
const RETURNED_COUNT: usize = 5;
/// The price of each subscription, in cents.
const PRICE: i64 = 1_299;

/// The content of a file for `dueday orders import`: products, the lines of a SKU, and the stock in the morning.
const STOCK: &str = "\
product,name,sku,quantity,warehouse,region,stock
beans,House Blend 1 kg,gold,2,ams,eu,140
filter,Paper filters,gold,1,ams,eu,500
beans,House Blend 1 kg,,,nyc,na,40
";

/// The content of a file for `dueday orders people`: a representative of customers.
const PEOPLE: &str = "\
employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency
ada,Ada Archer,am,Account Manager,true,sales,,2025-01-01,50000.00,EUR
";

/// Runs `dueday` with `--json`, and asserts that it succeeds. Returns its output.
fn run(data: &Path, command: &str, more: &[&str]) -> Value {
    let (code, stdout, stderr) = output(dueday(data).arg("--json").args(command.split(' ')).args(more));
    assert_eq!(code, 0, "{command}: {stdout}{stderr}");
    serde_json::from_str(&stdout).unwrap_or_default()
}

/// Imports subscriptions that are due today, the products and a representative. Charges the subscriptions.
fn begin_day(folder: &Path, data: &Path) {
    let [subscriptions, stock, people] = ["s.csv", "stock.csv", "people.csv"].map(|name| folder.join(name));
    let today = Utc::now().date_naive();
    let rows: String = (0..ORDER_COUNT)
        .map(|n| {
            let day = today.day();
            format!("c-{n},c-{n}@example.com,C {n},,1,gold,Gold plan,{day},12.99,EUR,cus,pm_card_visa,{today}\n")
        })
        .collect();
    let head = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n";
    std::fs::write(&subscriptions, head.to_owned() + &rows).unwrap();
    std::fs::write(&stock, STOCK).unwrap();
    run(data, "import", &[subscriptions.to_str().unwrap()]);
    import_places(folder, data);
    run(data, "orders import", &[stock.to_str().unwrap()]);
    // Ada is the only representative, so she represents all customers.
    std::fs::write(&people, PEOPLE).unwrap();
    run(data, "orders people", &[people.to_str().unwrap()]);
    run(data, "run payments", &[]);
    // `orders list` first processes the events of the payments. So this command places the orders.
    assert_eq!(run(data, "orders list --limit 1000", &[]).as_array().unwrap().len(), ORDER_COUNT);
}

/// Returns all orders of the API's list at `path`, page by page.
async fn list_orders(api: &ApiClient, path: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, page) = api.send(&format!("GET {path}&limit=100{cursor}"), Value::Null).await;
        assert_eq!(status, 200, "{page}");
        all.extend(page["data"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            None => return all,
            Some(next) => cursor = format!("&cursor={next}"),
        }
    }
}

/// Returns the id of each order. `field` is the name of the field that contains the id.
fn order_ids(orders: &[Value], field: &str) -> Vec<String> {
    orders.iter().map(|order| order[field].as_str().unwrap().to_owned()).collect()
}

/// Returns the stock of a product in Amsterdam and in New York. Asserts that the total stock is the sum of both stocks.
async fn stock_of(api: &ApiClient, product: &str) -> (i64, i64) {
    let (_, product) = api.send(&format!("GET /products/{product}"), Value::Null).await;
    let quantity = |warehouse: &str| {
        let stock = product["stock"].as_array().unwrap().iter().find(|stock| stock["warehouse"] == warehouse);
        stock.map_or(0, |stock| stock["quantity"].as_i64().unwrap())
    };
    let both = (quantity("ams"), quantity("nyc"));
    assert_eq!(product["total_stock"], json!(both.0 + both.1));
    both
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_a_working_day_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    begin_day(folder.path(), &data);
    let server = Server::start(&data, &[]);
    let api = ApiClient { url: server.api_url.clone(), http: reqwest::Client::new() };

    // In the morning all orders wait for an address. The first 70 orders with an address use up the beans in
    // Amsterdam.
    assert_eq!(list_orders(&api, "/orders?status=BACKORDERED").await.len(), ORDER_COUNT);
    for n in 0..ORDER_COUNT {
        let address = json!({
            "name": format!("C {n}"), "street": "1 Quay", "postal_code": "1011", "city": "Amsterdam", "country": "nl", "region": "eu",
        });
        assert_eq!(api.send(&format!("PUT /customers/c-{n}"), address).await.0, 200);
    }
    // A delivery arrives with enough beans for the other orders. The command fills these orders before it ends.
    run(&data, "orders receive beans ams 110", &[]);
    assert_eq!(list_orders(&api, "/orders?status=OPEN").await.len(), ORDER_COUNT);
    let (in_ams, in_nyc) = stock_of(&api, "beans").await;
    assert_eq!(in_ams + in_nyc, 140 + 110 + 40 - 2 * 110);

    // The pick list of Amsterdam contains each order once, with all its pieces.
    let pick_list = run(&data, "orders pick-list ams", &[]);
    let to_pick = order_ids(pick_list.as_array().unwrap(), "order");
    let listed = order_ids(&list_orders(&api, "/warehouses/ams/orders?status=OPEN").await, "id");
    assert_eq!(
        (to_pick.len(), &to_pick),
        (ORDER_COUNT, &listed),
        "the stock in the region of the customers is used first"
    );
    assert_eq!(BTreeSet::from_iter(&to_pick).len(), ORDER_COUNT);
    assert_pick_list_has_the_same_orders_in_each_form(&data, &to_pick);
    // One customer wants two packs of filters and no beans.
    run(&data, &format!("orders lines {} filter=2", to_pick[ORDER_COUNT - 1]), &[]);
    // Another customer's filters are sent later.
    let beans = json!({"lines": [{"product": "beans", "quantity": 2}]});
    let (status, split) = api.send(&format!("POST /orders/{}/split", to_pick[ORDER_COUNT - 2]), beans).await;
    assert_eq!((status, &split["follow_up"]["status"]), (201, &json!("OPEN")), "{split}");
    for orders in to_pick.chunks(100) {
        let orders: Vec<Value> = orders.iter().map(|order| json!({"order": order})).collect();
        let (status, picked) = api.send("POST /orders/advance", json!({"step": "pick", "orders": orders})).await;
        assert_eq!(status, 200, "{picked}");
        let is_picked = |result: &Value| result["problem"].is_null();
        assert!(picked["data"].as_array().unwrap().iter().all(is_picked), "{picked}");
    }
    let parcels = folder.path().join("parcels.csv");
    let rows = to_pick[..SHIPPED_COUNT].iter().enumerate().map(|(n, order)| format!("{order},Post,NL{n:06}\n"));
    std::fs::write(&parcels, "order,carrier,tracking_number\n".to_owned() + &rows.collect::<String>()).unwrap();
    run(&data, "orders ship --file", &[parcels.to_str().unwrap()]);

    // Five customers return their parcels. The products in one of the parcels cannot be sold again.
    for (n, order) in to_pick[..RETURNED_COUNT].iter().enumerate() {
        let (status, returned) = api.send(&format!("POST /orders/{order}/return"), json!({"unsellable": n == 0})).await;
        assert_eq!((status, &returned["status"]), (200, &json!("RETURNED")), "{returned}");
    }
    // The filters of one parcel were broken.
    run(&data, &format!("orders replace {} --line filter=1 --reason", to_pick[SHIPPED_COUNT - 1]), &["broken"]);
    // The remaining stock is counted: three bags of beans are missing. Two filters are wet and written off, and ten
    // bags of beans are moved to New York.
    let (before, _) = stock_of(&api, "beans").await;
    run(&data, &format!("orders count beans ams {} --reason", before - 3), &["yearly count"]);
    let write_off = json!({"warehouse": "ams", "quantity": 2, "reason": "wet"});
    let (status, written_off) = api.send("PUT /products/filter/write-offs/01MCCKG2G0000G000000000007", write_off).await;
    assert_eq!(status, 200, "{written_off}");
    run(&data, "orders transfer beans ams nyc 10", &[]);

    // In the evening, the stock equals the sum of all deliveries, shipments, returns and counts of the day.
    let sellable_returns = i64::try_from(RETURNED_COUNT).unwrap() - 1;
    let expected_beans = 140 + 110 + 40 - 2 * 109 + 2 * sellable_returns - 3;
    assert_eq!(stock_of(&api, "beans").await, (expected_beans - 50, 50));
    assert_eq!(stock_of(&api, "filter").await, (500 - 111 + sellable_returns - 2 - 1, 0));
    for (status, count) in [
        ("SHIPPED", SHIPPED_COUNT - RETURNED_COUNT),
        ("RETURNED", RETURNED_COUNT),
        ("PICKED", ORDER_COUNT - SHIPPED_COUNT),
        ("OPEN", 2),
    ] {
        assert_eq!(list_orders(&api, &format!("/orders?status={status}")).await.len(), count, "{status}");
    }
    let today = Utc::now().date_naive();
    let quarter = format!("{}-Q{}", today.year(), today.month().div_ceil(3));
    let ranking = run(&data, &format!("orders ranking {quarter}"), &[]);
    let credited = PRICE * i64::try_from(ORDER_COUNT - RETURNED_COUNT).unwrap();
    assert_eq!(ranking[0]["amount"], json!(credited), "{ranking}");
    // The server publishes changes a moment later. Without a server, the command `dueday events` publishes the changes
    // before it lists the events.
    drop(server);
    let (code, shipped, stderr) = output(dueday(&data).args(["events", "--type", "order.shipped", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(shipped.lines().count(), SHIPPED_COUNT, "one event for each shipment");
    let movements = run(&data, "orders movements beans", &[]);
    let changes = movements.as_array().unwrap().iter().map(|movement| movement["stock_change"].as_i64().unwrap());
    assert_eq!(changes.sum::<i64>(), 140 + 40 + 110 - 3 - 10, "{movements}");
    let of_order = run(&data, &format!("orders movements --order {}", to_pick[1]), &[]);
    let changes = of_order.as_array().unwrap().iter().map(|movement| movement["stock_change"].as_i64().unwrap());
    assert_eq!(changes.sum::<i64>(), 0, "the order was returned: {of_order}");
    run(&data, "orders audit", &[]);
}

/// Compares three forms of the pick list of Amsterdam with `to_pick`, which contains the ids of its orders, oldest
/// first. The forms are: as CSV, with the newest order first, and as packing slips.
fn assert_pick_list_has_the_same_orders_in_each_form(data: &Path, to_pick: &[String]) {
    let (_, text, _) = output(dueday(data).args(["orders", "pick-list", "ams", "--csv"]));
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    assert_eq!(&rows.headers().unwrap()[0], "order");
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let mut orders: Vec<&str> = rows.iter().map(|row| &row[0]).collect();
    orders.dedup();
    assert_eq!(orders, to_pick);
    let pieces = |product: &str| -> usize {
        rows.iter().filter(|row| &row[10] == product).map(|row| row[11].parse::<usize>().unwrap()).sum()
    };
    assert_eq!((pieces("beans"), pieces("filter")), (2 * ORDER_COUNT, ORDER_COUNT));

    let newest = run(data, "orders pick-list ams --newest-first --limit 7", &[]);
    let expected: Vec<&String> = to_pick.iter().rev().take(7).collect();
    assert_eq!(order_ids(newest.as_array().unwrap(), "order").iter().collect::<Vec<_>>(), expected);

    let slips = data.with_file_name("slips.html");
    run(data, "orders pick-list ams --slips", &[slips.to_str().unwrap()]);
    let page = std::fs::read_to_string(slips).unwrap();
    assert_eq!(page.matches("<section>").count(), to_pick.len());
    assert!(to_pick.iter().all(|order| page.contains(order.as_str())));
}
