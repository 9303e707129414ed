//! Tests of the commands that change the stock.

use std::path::Path;

use crate::demo_folder::write_demo_folder;
use crate::orders::{json_output, run};

#[test]
fn stock_is_counted_written_off_and_moved_and_each_change_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_demo_folder(&data);
    let open = json_output(&data, &["orders", "list", "--status", "OPEN"]);
    let order = open[0]["order"].as_str().unwrap();
    for step in [&["pick", order][..], &["ship", order], &["return", "--unsellable", order]] {
        let (code, _, stderr) = run(&data, &[&["orders"][..], step].concat());
        assert_eq!(code, 0, "{step:?}: {stderr}");
    }
    assert!(run(&data, &["orders", "show", order]).1.ends_with("the returned products were not sellable\n"));
    let stock = |data: &Path| {
        let stock = json_output(data, &["orders", "stock", "filters"]);
        let of = |place: usize| stock["warehouses"][place]["quantity"].as_u64().unwrap();
        (stock["total"].as_u64().unwrap(), of(0), of(1))
    };
    let (_, cork, oakland) = stock(&data);
    let id = "01JZXCVBNM0123456789ABCDEF";
    let found = (cork - 3).to_string();
    let count = ["orders", "count", "filters", "cork", &found, "--reason", "yearly count", "--movement", id];
    for _ in 0..2 {
        let (code, stdout, stderr) = run(&data, &count);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.starts_with(&format!("the stock of filters in cork is {found} (-3); 0 waiting")), "{stdout}");
    }
    assert_eq!(stock(&data), (cork - 3 + oakland, cork - 3, oakland));
    let (code, stdout, stderr) = run(&data, &["orders", "write-off", "filters", "cork", "2", "--reason", "wet"]);
    assert_eq!((code, stdout.as_str()), (0, "2 x filters subtracted from the stock of cork\n"), "{stderr}");
    let (code, _, stderr) = run(&data, &["orders", "transfer", "filters", "cork", "oakland", "4"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stock(&data), (cork - 5 + oakland, cork - 9, oakland + 4));
    for (arguments, expected) in [
        (vec!["write-off", "filters", "cork", "1000", "--reason", "wet"], "and 1000 were requested"),
        (vec!["transfer", "filters", "cork", "cork", "1"], "name another warehouse"),
        (vec!["count", "filters", "cork", "1"], "--reason"),
        (vec!["count", "none", "cork", "1", "--reason", "r"], "there is no product none"),
        (vec!["count", "filters", "none", "1", "--reason", "r"], "there is no warehouse none"),
        (vec!["count", "filters", "cork", "1", "--reason", "r", "--movement", id], "already used for another movement"),
    ] {
        let (code, _, stderr) = run(&data, &[&["orders"][..], &arguments].concat());
        assert!(code != 0 && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let movements = json_output(&data, &["orders", "movements", "filters"]);
    let mut kinds: Vec<&str> =
        movements.as_array().unwrap().iter().map(|movement| movement["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["count", "initial_stock", "initial_stock", "transfer", "write_off"]);
    let (_, stdout, _) = run(&data, &["orders", "movements", "filters", "--limit", "1"]);
    assert!(stdout.contains("cork") && stdout.ends_with("1 movement\n"), "{stdout}");
    let (code, stdout, stderr) = run(&data, &["orders", "audit"]);
    assert!(code == 0 && stdout.ends_with(": no differences\n"), "{stdout}{stderr}");
}
