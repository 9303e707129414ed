//! Tests of the order desk in a local installation: payments place orders, which are filled and shipped, and files with
//! stock, employees and places are imported.

use crate::demo_folder::write_demo_folder;
use crate::terminal;

use std::path::Path;

use chrono::Utc;
use serde_json::{Value, json};
use terminal::{dueday, output};

/// The content of a file for `dueday orders import`: products, the lines of a SKU, and initial stocks.
pub const STOCK: &str = "\
product,name,sku,quantity,warehouse,region,stock
beans,House Blend 1 kg,gold,2,ams,eu,5
beans,House Blend 1 kg,,,nyc,na,1
filter,Paper filters,gold,1,ams,eu,9
";

/// The content of a file for `dueday orders places`: the places and jobs to which the tests refer.
pub const PLACES: &str = "\
kind,id,name,in,represents_customers
region,eu,Europe,,
region,na,North America,,
country,gb,United Kingdom,eu,
country,nl,Netherlands,eu,
location,leeds,1 High Street,United Kingdom,
department,sales,Sales,leeds,
department,logistics,Logistics,leeds,
job,am,Account Manager,,true
job,pk,Picker,,false
";

/// Writes [`PLACES`] to a file in `folder`, and imports the file.
pub fn import_places(folder: &Path, data: &Path) {
    let places = folder.join("places.csv");
    std::fs::write(&places, PLACES).unwrap();
    let (code, stdout, stderr) = run(data, &["orders", "places", places.to_str().unwrap()]);
    assert_eq!(code, 0, "{stdout}{stderr}");
}

/// Runs `dueday`. Returns the exit code, standard output and standard error.
pub fn run(data: &Path, arguments: &[&str]) -> (i32, String, String) {
    output(dueday(data).args(arguments))
}

/// Runs `dueday` with `--json`, and asserts that it succeeds. Returns its output.
pub fn json_output(data: &Path, arguments: &[&str]) -> Value {
    let (code, stdout, stderr) = output(dueday(data).arg("--json").args(arguments));
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

/// Imports three subscriptions of `gold`, charges the subscriptions today, and imports the places. Returns the data
/// folder.
pub fn folder_with_payments(folder: &Path) -> std::path::PathBuf {
    let (data, csv) = (folder.join("data"), folder.join("s.csv"));
    let today = Utc::now().date_naive();
    let day = today.format("%-d");
    let rows: String = ["acme", "bell", "cube"]
        .map(|account| {
            format!(
                "{account},{account}@example.com,{account},,1,gold,Gold plan,{day},12.99,EUR,cus,pm_card_visa,{today}\n"
            )
        })
        .concat();
    let head = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n";
    std::fs::write(&csv, head.to_owned() + &rows).unwrap();
    let (code, _, stderr) = run(&data, &["import", csv.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, stderr) = run(&data, &["run", "payments"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    import_places(folder, &data);
    data
}

#[test]
fn payment_places_one_order_that_waits_for_address_and_stock_and_is_shipped() {
    let folder = tempfile::tempdir().unwrap();
    let stock = folder.path().join("stock.csv");
    std::fs::write(&stock, STOCK).unwrap();
    let data = folder_with_payments(folder.path());
    let (code, stdout, stderr) = run(&data, &["orders", "import", stock.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("new: 2 products, 2 warehouses, 3 initial stocks; 1 SKU with"), "{stdout}");
    let (_, stdout, _) = run(&data, &["orders", "import", stock.to_str().unwrap()]);
    assert!(stdout.starts_with("new: 0 products, 0 warehouses, 0 initial stocks; "), "{stdout}");

    // Every command processes the new payment events, and no command places an order twice.
    assert_eq!(run(&data, &["events"]).0, 0);
    let all = json_output(&data, &["orders", "list"]);
    assert_eq!(all.as_array().unwrap().len(), 3, "{all}");
    assert!(
        all.as_array().unwrap().iter().all(|o| o["status"] == "BACKORDERED" && o["waits_for"] == "address"),
        "{all}"
    );

    for account in ["acme", "bell", "cube"] {
        let address = ["--name", account, "--street", "1 High Street", "--postal-code", "LS1", "--city", "Leeds"];
        let place = ["--country", "gb", "--region", "eu"];
        let arguments = [&["orders", "address", account][..], &address, &place].concat();
        assert_eq!(run(&data, &arguments).0, 0);
    }
    let open = json_output(&data, &["orders", "list", "--status", "open"]);
    let ids: Vec<&str> = open.as_array().unwrap().iter().map(|order| order["order"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "a stock of five fills two orders of two each: {open}");
    let stock = json_output(&data, &["orders", "stock", "beans"]);
    assert_eq!((&stock["total"], &stock["warehouses"][0]["quantity"]), (&2.into(), &1.into()), "{stock}");

    let (code, stdout, _) = run(&data, &["orders", "receive", "beans", "ams", "10"]);
    assert_eq!((code, stdout.as_str()), (0, "10 x beans added to the stock of ams; 1 waiting order was filled\n"));
    assert_eq!(run(&data, &["orders", "pick", ids[0], ids[1]]).0, 0);
    let (code, stdout, _) = run(&data, &["orders", "ship", ids[0]]);
    assert_eq!((code, stdout), (0, format!("{} is SHIPPED\n", ids[0])));
    let (code, _, stderr) = run(&data, &["orders", "cancel", ids[0], ids[1], "--yes"]);
    assert!(code == 1 && stderr.contains("an order that is SHIPPED cannot become CANCELLED"), "{stderr}");
    let of_acme = json_output(&data, &["orders", "list", "--customer", "acme"]);
    let shown = json_output(&data, &["orders", "show", of_acme[0]["order"].as_str().unwrap()]);
    assert_eq!((&shown["lines"][0]["product"], &shown["lines"][0]["quantity"]), (&"beans".into(), &2.into()));
    let stock = json_output(&data, &["orders", "stock", "beans"]);
    assert_eq!(stock["total"], 5 + 1 + 10 - 3 * 2 + 2, "the cancelled order returned its stock: {stock}");
}

#[test]
fn people_import_hires_reassigns_and_ends_employees() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("people.csv"));
    write_demo_folder(&data);
    let head = "employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency,left_on\n";
    let import = |rows: &str| {
        std::fs::write(&file, head.to_owned() + rows).unwrap();
        run(&data, &["orders", "people", file.to_str().unwrap()])
    };
    let jun = "jun,Jun Potter,pk,Picker,false,logistics,cork,2026-02-01,31000.00,EUR,\n";
    assert_eq!(import(jun).1, "1 hired, 0 reassigned, 0 left\n");
    assert_eq!(import(jun).1, "0 hired, 0 reassigned, 0 left\n", "a repeated import changes nothing");
    assert_eq!(json_output(&data, &["orders", "employees", "--warehouse", "cork"])[0]["employee"], "jun");
    assert_eq!(import(&jun.replace("cork", "oakland")).1, "0 hired, 1 reassigned, 0 left\n");
    assert_eq!(json_output(&data, &["orders", "employees", "--warehouse", "cork"]), Value::Array(vec![]));
    assert_eq!(json_output(&data, &["orders", "employees", "--name", "JUN potter"])[0]["warehouse"], "oakland");
    assert_eq!(json_output(&data, &["orders", "employees", "--title", "account manager"]).as_array().unwrap().len(), 3);

    let chen = "chen,Chen Weaver,am,Account Manager,true,sales,,2026-01-10,46500.00,EUR,2026-02-01\n";
    let (code, _, stderr) = import(chen);
    assert!(
        code == 2 && stderr.contains("chen still represents") && stderr.contains("hand them over first"),
        "{stderr}"
    );
    for n in 0.. {
        let (code, stdout, stderr) = import(chen);
        if code == 0 {
            assert_eq!(stdout, "0 hired, 0 reassigned, 1 left\n");
            assert!(n > 1);
            break;
        }
        let customer =
            stderr.split("orders hand-over ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned();
        assert_eq!(run(&data, &["orders", "hand-over", &customer, "ada"]).0, 0);
    }
    assert_eq!(json_output(&data, &["orders", "employees", "chen"])[0]["left_on"], "2026-02-01");
    let (code, _, stderr) = import("eve,Eve,pk,Picker,perhaps,logistics,,2026-02-01,1.00,EUR,\n");
    assert!(code == 2 && stderr.contains("line 2: represents_customers \"perhaps\""), "{stderr}");
    for (column, dates) in
        [("hired_on \"2026-2-1\"", ["2026-2-1", ""]), ("left_on \"+12026-02-01\"", ["2026-02-01", "+12026-02-01"])]
    {
        let [hired_on, left_on] = dates;
        let (code, _, stderr) =
            import(&format!("eve,Eve,pk,Picker,false,logistics,cork,{hired_on},1.00,EUR,{left_on}\n"));
        let expected = format!("line 2: {column}: must be a date like 2027-01-31");
        assert!(code == 2 && stderr.contains(&expected), "{stderr}");
    }
}

/// Returns the sort keys of the items that contain confidential data of the employee `ada`.
fn confidential_keys(engine: &emulator::Engine) -> Vec<String> {
    let query = json!({
        "TableName": "dueday-orders", "KeyConditionExpression": "PK = :ada AND begins_with(SK, :prefix)",
        "ExpressionAttributeValues": {":ada": {"S": "EMP#ada"}, ":prefix": {"S": "HR-CONFIDENTIAL"}},
    });
    let found: Value = engine.execute("Query", &query).unwrap();
    found["Items"].as_array().unwrap().iter().map(|item| item["SK"]["S"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn people_import_moves_hire_dates_of_an_earlier_version_into_the_list_of_all_years() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("people.csv"));
    write_demo_folder(&data);
    let engine = || emulator::Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    let key = |sk: &str| json!({"PK": {"S": "EMP#ada"}, "SK": {"S": sk}});
    {
        let engine = engine();
        let read = json!({"TableName": "dueday-orders", "Key": key("HR-CONFIDENTIAL")});
        let mut item: Value = engine.execute("GetItem", &read).unwrap();
        engine.execute("DeleteItem", &read).unwrap();
        item["Item"]["SK"]["S"] = "HR-CONFIDENTIAL#2024".into();
        engine.execute("PutItem", &json!({"TableName": "dueday-orders", "Item": item["Item"]})).unwrap();
        assert_eq!(confidential_keys(&engine), ["HR-CONFIDENTIAL#2024"]);
    }
    std::fs::write(
        &file,
        "employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency\n\
         ada,Ada Archer,am,Account Manager,true,sales,,2024-03-01,52000.00,EUR\n",
    )
    .unwrap();
    for _ in 0..2 {
        let (code, stdout, stderr) = run(&data, &["orders", "people", file.to_str().unwrap()]);
        assert_eq!((code, stdout.as_str()), (0, "0 hired, 0 reassigned, 0 left\n"), "{stderr}");
        assert_eq!(confidential_keys(&engine()), ["HR-CONFIDENTIAL"]);
    }
}

#[test]
fn upgrade_is_refused_while_a_planned_change_of_an_employee_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_demo_folder(&data);
    let list = ["orders", "list"];
    assert_eq!(run(&data, &list).0, 0);
    let planned = json!({"PK": {"S": "EMP#ada"}, "SK": {"S": "PLANNED-CHANGES"}, "Data": {"S": "2027-03-01"}});
    let engine = emulator::Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    engine.execute("PutItem", &json!({"TableName": "dueday-orders", "Item": planned})).unwrap();
    drop(engine);
    let (code, _, stderr) = run(&data, &list);
    assert!(code != 0 && stderr.contains("EMP#ada") && stderr.contains("has a planned change"), "{code} {stderr}");
    // Payments do not depend on the order desk.
    assert_eq!(run(&data, &["run", "payments"]).0, 0);
}

#[test]
fn places_import_updates_items_and_region_lists_its_countries_and_warehouses() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("places.csv"));
    write_demo_folder(&data);
    let import = |rows: &str| {
        std::fs::write(&file, format!("kind,id,name,in,represents_customers\n{rows}")).unwrap();
        run(&data, &["orders", "places", file.to_str().unwrap()])
    };
    let all = "region,eu,Europe,,\ncountry,gb,United Kingdom,eu,\nlocation,leeds,1 High Street,united  Kingdom,\n\
        department,sales,Sales,leeds,\njob,am,Account Manager,,true\n";
    for _ in 0..2 {
        let (code, stdout, stderr) = import(all);
        assert_eq!((code, stdout.as_str()), (0, "5 lines imported\n"), "{stderr}");
        let (_, stdout, _) = run(&data, &["orders", "region", "eu"]);
        assert_eq!(stdout, "countries   de, fr, gb, ie, it\nwarehouses  cork\n");
    }
    let stock = folder.path().join("stock.csv");
    let header = "product,name,warehouse,region,stock\nbeans,Beans,";
    for (row, expected) in [
        ("cork,na,1\n", "the warehouse cork exists in the region eu, but the file has the region na"),
        ("york,uk,1\n", "there is no region uk; the existing ids are: apac, eu, na"),
    ] {
        std::fs::write(&stock, header.to_owned() + row).unwrap();
        let (code, _, stderr) = run(&data, &["orders", "import", stock.to_str().unwrap()]);
        assert!(code != 0 && stderr.contains(expected), "{code} {stderr}");
    }
    for (rows, expected) in [
        ("country,gb,Britain,uk,\n", "there is no region uk, neither in the file nor among the stored ones"),
        ("region,oc,Oceania,,\ncountry,gb,Britain,uk,\n", "there is no region uk, neither in the file nor"),
        ("location,york,1 Mill Lane,Mars,\n", "there is no country with the name Mars, neither in the file nor"),
        ("department,it,IT,york,\n", "there is no location york, neither in the file nor"),
    ] {
        let (code, _, stderr) = import(rows);
        assert!(code != 0 && stderr.contains(expected), "{code} {stderr}");
    }
    let (_, stdout, _) = run(&data, &["orders", "region", "oc"]);
    assert_eq!(stdout, "countries   none\nwarehouses  none\n", "a refused file changes nothing");
    // A line of the file may refer to a place in a later line.
    assert_eq!(import("country,gb,United Kingdom,uk,\nregion,uk,Britain,,\n").0, 0);
    let (_, stdout, _) = run(&data, &["orders", "region", "eu"]);
    assert_eq!(stdout, "countries   de, fr, ie, it\nwarehouses  cork\n", "the country is now in another region");
    assert_eq!(json_output(&data, &["orders", "region", "uk"])["countries"][0], "gb");
    let (code, _, stderr) = import("planet,mars,Mars,,\n");
    assert!(code == 2 && stderr.contains("line 2: kind \"planet\": must be region, country"), "{stderr}");
}

#[test]
fn invalid_input_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (data, stock) = (folder_with_payments(folder.path()), folder.path().join("stock.csv"));
    for (text, expected) in [
        (
            "product,name,sku,quantity,warehouse,region,stock\nbeans,Beans,gold,,,,\n",
            "line 2: sku and quantity must be given together",
        ),
        (
            "product,name,sku,quantity,warehouse,region,stock\nbeans,Beans,,,ams,,\n",
            "line 2: warehouse, region and stock",
        ),
        ("product,name\n", "the file must contain a line after the header; the columns are product,name,sku,"),
        ("", "the file must contain a line after the header"),
        (
            "product,name,warehouse,region,stock\nbeans,Beans,ams,eu,1\nfilter,Filter,ams,na,1\n",
            "the warehouse ams has the region eu in one line, but na in another",
        ),
        ("product\nbeans\n", "line 2: name must not be blank"),
        ("product,name,colour\nbeans,Beans,red\n", "column \"colour\" is unknown; the columns are product,name,"),
        ("product,name,sku,quantity\nbeans,Beans,gold,two\n", "line 2: quantity \"two\": invalid digit"),
        (
            "product,name,sku,quantity,warehouse,region,stock\nb#,Beans,,,,,\n",
            "line 2: product \"b#\": must be 1 to 64 letters",
        ),
    ] {
        std::fs::write(&stock, text).unwrap();
        let (code, _, stderr) = run(&data, &["orders", "import", stock.to_str().unwrap()]);
        assert!(code == 2 && stderr.contains(expected), "{stderr}");
    }
    for (arguments, expected) in [
        (&["orders", "stock", "beans"][..], "there is no product beans"),
        (&["orders", "receive", "beans", "ams", "1"], "there is no product beans"),
        (&["orders", "list", "--status", "gone"], "must be one of BACKORDERED, OPEN"),
        (&["orders", "list", "--from", "2027-02-02", "--to", "2027-02-01"], "is after --to"),
        (&["orders", "show", "2027-01-31.01JZXCVBNM0123456789ABCDEF"], "there is no order"),
        (&["orders", "hand-over", "acme", "eve"], "eve is not a customer representative"),
    ] {
        let (code, _, stderr) = run(&data, arguments);
        assert!(code == 2 && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let (code, stdout, _) = run(&data, &["orders", "shards", "--orders", "3000000"]);
    assert!(code == 0 && stdout.contains("20% of 3,000,000 / 48,000 = 13\n"), "{stdout}");
    let (_, stdout, _) = run(&data, &["orders", "shards", "--orders", "1000000", "--item-bytes", "8192"]);
    assert!(
        stdout.starts_with("read units per order               8192 / 4,096 = 2\n")
            && stdout.contains("3,000 / 2 = 1,500\n")
            && stdout.contains("20% of 1,000,000 / 1,500 = 134\n"),
        "{stdout}"
    );
}

#[tokio::test]
async fn data_folder_of_an_older_version_gets_an_order_desk() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_payments(folder.path());
    let engine = emulator::Engine::open(&data.join("dynamodb.sqlite")).unwrap();
    engine.client().delete_table().table_name("dueday-orders").send().await.unwrap();
    drop(engine);
    let (code, stdout, stderr) = run(&data, &["orders", "list"]);
    assert_eq!((code, stdout.as_str()), (0, "no orders were found\n"), "{stderr}");
    assert_eq!(json_output(&data, &["subscriptions"]).as_array().map_or(0, Vec::len), 3);
}

#[test]
fn order_that_cannot_be_placed_is_set_aside_and_placed_later() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder_with_payments(folder.path());
    let ask = |operation: &str, request: Value| {
        let engine = emulator::Engine::open(&data.join("dynamodb.sqlite")).unwrap();
        engine.execute(operation, &request).unwrap();
    };
    let key = serde_json::json!({ "PK": { "S": "SKU#gold" }, "SK": { "S": "PRODUCT#beans" } });
    ask("PutItem", serde_json::json!({ "TableName": "dueday-orders", "Item": key }));
    let (code, stdout, stderr) = run(&data, &["orders", "list"]);
    assert_eq!((code, stdout.as_str()), (1, "no orders were found\n"), "the operator must act");
    let aside = data.join("not-ordered.jsonl");
    assert!(
        stderr.contains("the order of a payment cannot be placed") && stderr.contains("not-ordered.jsonl"),
        "{stderr}"
    );
    for _ in 0..2 {
        assert_eq!(std::fs::read_to_string(&aside).unwrap().lines().count(), 3);
        let (code, _, stderr) = run(&data, &["orders", "list"]);
        let failures = stderr.matches("the order of a payment cannot be placed").count();
        assert!(code == 1 && failures == 3, "each command reports the failures: {stderr}");
    }

    ask("DeleteItem", serde_json::json!({ "TableName": "dueday-orders", "Key": key }));
    let stock = folder.path().join("stock.csv");
    std::fs::write(&stock, STOCK).unwrap();
    assert_eq!(run(&data, &["orders", "import", stock.to_str().unwrap()]).0, 0);
    assert_eq!(json_output(&data, &["orders", "list"]).as_array().unwrap().len(), 3);
    assert!(!aside.exists(), "the next command places the orders");
}

#[test]
fn months_paid_before_their_sku_had_products_get_orders_by_a_backfill() {
    let folder = tempfile::tempdir().unwrap();
    let (data, stock) = (folder_with_payments(folder.path()), folder.path().join("stock.csv"));
    std::fs::write(&stock, STOCK).unwrap();
    let (code, _, stderr) = run(&data, &["orders", "backfill", "gold"]);
    assert!(code == 2 && stderr.contains("the SKU gold has no products: define them first with"), "{stderr}");
    // The order desk records the partial refund of `bell` before the order exists. At the end of this test, a refund of
    // the remaining amount cancels the order.
    let receipts = json_output(&data, &["receipts", "bell"]);
    let partly = receipts[0]["number"].as_str().unwrap().to_owned();
    assert_eq!(run(&data, &["refund", &partly, "--amount", "5.00", "--yes", "--reason", "a test"]).0, 0);
    let receipts = json_output(&data, &["receipts", "cube"]);
    let receipt = receipts[0]["number"].as_str().unwrap_or_else(|| panic!("{receipts}"));
    assert_eq!(run(&data, &["refund", receipt, "--yes", "--reason", "a test"]).0, 0);
    assert_eq!(json_output(&data, &["orders", "list"]).as_array().unwrap().len(), 0, "no products, no orders");
    assert_eq!(run(&data, &["orders", "import", stock.to_str().unwrap()]).0, 0);
    assert_eq!(json_output(&data, &["orders", "list"]).as_array().unwrap().len(), 0, "the months were paid before");

    let today = Utc::now().date_naive().to_string();
    let preview = json_output(&data, &["orders", "backfill", "gold", "--dry-run"]);
    let expected = serde_json::json!([{
        "sku": "gold", "orders": 2, "customers": 2, "first_paid_on": today, "last_paid_on": today
    }]);
    assert_eq!((&preview["missing"], &preview["placed"]), (&expected, &Value::Null), "cube was refunded in full");
    assert_eq!(json_output(&data, &["orders", "list"]).as_array().unwrap().len(), 0, "a preview changes nothing");
    let (code, stdout, _) = run(&data, &["orders", "backfill", "gold", "--to", "2020-01-01"]);
    assert_eq!((code, stdout.as_str()), (0, "no order is missing in the selected months\n"));

    let (code, stdout, stderr) = run(&data, &["orders", "backfill", "gold", "--yes"]);
    assert_eq!((code, stdout.as_str()), (0, "2 orders placed: 2 BACKORDERED\n"), "{stderr}");
    let (code, stdout, _) = run(&data, &["orders", "backfill", "gold", "--yes"]);
    assert_eq!(
        (code, stdout.as_str()),
        (
            0,
            "no order is missing in the selected months\n1 month without an order left out: refunded in full, reversed, or of an erased account\n"
        ),
        "a repeated command changes nothing"
    );
    let placed = json_output(&data, &["orders", "list"]);
    let mut customers: Vec<&str> =
        placed.as_array().unwrap().iter().map(|order| order["customer"].as_str().unwrap()).collect();
    customers.sort_unstable();
    assert_eq!(customers, ["acme", "bell"]);
    let logged = json_output(&data, &["log"]);
    assert!(logged.to_string().contains("orders.backfill"), "{logged}");
    let refunded = placed.as_array().unwrap().iter().find(|order| order["customer"] == "bell").unwrap();
    assert_eq!(refunded["refunded_amount"], 500, "{refunded}");
    let (code, stdout, stderr) = run(&data, &["orders", "audit"]);
    assert_eq!(code, 0, "a month that needs no order is no difference: {stdout}{stderr}");
    assert_eq!(run(&data, &["refund", &partly, "--amount", "7.99", "--yes", "--reason", "a test"]).0, 0);
    let listed = json_output(&data, &["orders", "list", "--customer", "bell"]);
    assert_eq!(listed[0]["status"], "CANCELLED", "{listed}");
}

#[test]
fn list_of_orders_says_that_it_is_shortened() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_demo_folder(&data);
    let (code, text, stderr) = run(&data, &["orders", "list", "--limit", "2"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(text.ends_with("the first 2 orders; --limit shows more\n"), "{text}");
    let (_, json, _) = run(&data, &["orders", "list", "--limit", "2", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap().as_array().unwrap().len(), 2);
}
