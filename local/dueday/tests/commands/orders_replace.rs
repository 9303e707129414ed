//! Tests of `dueday orders replace` with an idempotency key: a repeated command sends nothing again.

use crate::orders::{STOCK, folder_with_payments, json_output, run};

#[test]
fn repeated_replacement_with_the_same_key_sends_the_products_once() {
    let folder = tempfile::tempdir().unwrap();
    let (data, stock) = (folder_with_payments(folder.path()), folder.path().join("stock.csv"));
    std::fs::write(&stock, STOCK).unwrap();
    assert_eq!(run(&data, &["orders", "import", stock.to_str().unwrap()]).0, 0);
    let address = ["--name", "Acme", "--street", "1 High Street", "--postal-code", "LS1", "--city", "Leeds"];
    let place = ["--country", "gb", "--region", "eu"];
    let (code, _, stderr) = run(&data, &[&["orders", "address", "acme"][..], &address, &place].concat());
    assert_eq!(code, 0, "{stderr}");
    let open = json_output(&data, &["orders", "list", "--status", "open"]);
    let order = open[0]["order"].as_str().unwrap().to_owned();
    for step in ["pick", "ship"] {
        assert_eq!(run(&data, &["orders", step, &order]).0, 0);
    }
    let total = || json_output(&data, &["orders", "stock", "beans"])["total"].as_u64().unwrap();
    let before = total();
    let replace = |more: &[&str]| {
        let command = ["orders", "replace", &order, "--line", "beans=1"];
        run(&data, &[&command[..], more].concat())
    };
    let keyed = ["--reason", "parcel lost", "--idempotency-key", "ticket 4711"];
    let (code, stdout, stderr) = replace(&keyed);
    assert!(code == 0 && stdout.contains(&format!("{order}.2 is OPEN and has 1 x beans")), "{stdout}{stderr}");
    let (code, stdout, stderr) = replace(&keyed);
    let expected = format!("the products were already sent again with the order {order}.2, which is OPEN");
    assert!(code == 0 && stdout.starts_with(&expected), "{stdout}{stderr}");
    let repeated = json_output(&data, &[&["orders", "replace", &order, "--line", "beans=1"][..], &keyed].concat());
    assert_eq!(repeated["follow_up"]["order"], format!("{order}.2"), "{repeated}");
    assert_eq!(total(), before - 1, "the pieces are deducted once");

    for (more, expected) in [
        (&["--reason", "broken", "--idempotency-key", "ticket 4711"][..], "belongs to a replacement of other products"),
        (&["--reason", "broken", "--idempotency-key", ""], "must be 1 to 255 printable ASCII characters"),
    ] {
        let (code, _, stderr) = replace(more);
        assert!(code == 2 && stderr.contains(expected), "{more:?}: {stderr}");
    }
    assert_eq!(total(), before - 1);
    // Another key, and a command without a key, send the products again.
    assert_eq!(replace(&["--reason", "parcel lost", "--idempotency-key", "ticket 4712"]).0, 0);
    assert_eq!(replace(&["--reason", "parcel lost"]).0, 0);
    assert_eq!(json_output(&data, &["orders", "show", &order])["follow_ups"], 3);
}
