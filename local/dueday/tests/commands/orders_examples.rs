//! The example files in the help of the import commands of the order desk can be imported one after the other.

use std::path::Path;

use crate::terminal::{dueday, output};

/// The content of a file for `dueday import`, which creates the data folder.
const SUBSCRIPTIONS: &str = "\
account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date
acme,a@example.com,Acme,,1,gold,Gold plan,1,12.99,EUR,cus_1,pm_card_visa,
";

/// Returns the example file in the help of `dueday orders <command>`.
fn example_in_help(data: &Path, command: &str) -> String {
    let (_, help, _) = output(dueday(data).args(["orders", command, "--help"]));
    let (_, example) = help.split_once("Example:\n").unwrap();
    example.lines().map(|line| line.trim().to_owned() + "\n").collect()
}

#[test]
fn examples_in_the_help_can_be_imported_in_the_documented_sequence() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let subscriptions = folder.path().join("subscriptions.csv");
    std::fs::write(&subscriptions, SUBSCRIPTIONS).unwrap();
    assert_eq!(output(dueday(&data).args(["import", subscriptions.to_str().unwrap()])).0, 0);
    for command in ["places", "import", "people"] {
        let file = folder.path().join(command).with_extension("csv");
        std::fs::write(&file, example_in_help(&data, command)).unwrap();
        let (code, stdout, stderr) = output(dueday(&data).args(["orders", command, file.to_str().unwrap()]));
        assert_eq!(code, 0, "{command}: {stdout}{stderr}");
    }
}
