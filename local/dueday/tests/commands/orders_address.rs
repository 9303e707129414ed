//! Tests of `dueday orders address`, which sets the address of a customer or of an order from options or from a file.

use std::path::PathBuf;

use serde_json::json;

use crate::orders::{STOCK, folder_with_payments, json_output, run};

/// An address in a JSON file.
const JSON_ADDRESS: &str = r#"{"name": "Acme Ltd", "street": "1 High Street", "line2": "Unit 4", "postal_code": "LS1",
    "city": "Leeds", "country": "gb", "region": "eu", "phone": "+44 113 496 0000"}"#;

/// An address in a TOML file.
const TOML_ADDRESS: &str = r#"
name = "Acme Ltd"
street = "2 Low Street"
postal_code = "1011"
city = "Amsterdam"
state = "North Holland"
country = "nl"
region = "eu"
"#;

/// A folder for files, and a data folder with the orders of three accounts.
struct AddressTest {
    folder: tempfile::TempDir,
    data: PathBuf,
}

impl AddressTest {
    /// Creates the folders. The orders wait for an address.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder_with_payments(folder.path());
        let test = Self { folder, data };
        let stock = test.write("stock.csv", STOCK);
        assert_eq!(run(&test.data, &["orders", "import", &stock]).0, 0);
        test
    }

    /// Writes a file. Returns its path.
    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

#[test]
fn address_of_a_customer_and_of_an_unshipped_order_is_read_from_a_file() {
    let test = AddressTest::new();
    let (json_file, toml_file) = (test.write("address.json", JSON_ADDRESS), test.write("address.toml", TOML_ADDRESS));
    let (code, stdout, stderr) = run(&test.data, &["orders", "address", "acme", "--file", &json_file]);
    assert_eq!((code, stdout.as_str()), (0, "the address of acme was set; 1 waiting order was filled\n"), "{stderr}");
    let of_acme = json_output(&test.data, &["orders", "list", "--customer", "acme"]);
    let order = of_acme[0]["order"].as_str().unwrap();
    let show = || json_output(&test.data, &["orders", "show", order])["address"].clone();
    let mut expected: serde_json::Value = serde_json::from_str(JSON_ADDRESS).unwrap();
    assert_eq!(show(), expected);

    let correct = ["orders", "address", "acme", "--file", &toml_file, "--order", order];
    assert_eq!(json_output(&test.data, &correct)["address"]["state"], "North Holland");
    expected = json!({
        "name": "Acme Ltd", "street": "2 Low Street", "postal_code": "1011", "city": "Amsterdam",
        "state": "North Holland", "country": "nl", "region": "eu",
    });
    assert_eq!(show(), expected, "an absent field removes the stored value");
    let (_, stdout, _) = run(&test.data, &["orders", "show", order]);
    assert!(stdout.contains("ship to Acme Ltd, 2 Low Street, 1011 Amsterdam, North Holland, nl\n"), "{stdout}");
    let other = ["orders", "address", "bell", "--file", &toml_file, "--order", order];
    let (code, _, stderr) = run(&test.data, &other);
    assert!(code == 2 && stderr.contains("is not an order of bell"), "{code} {stderr}");

    for step in ["pick", "ship"] {
        assert_eq!(run(&test.data, &["orders", step, order]).0, 0);
    }
    let (code, _, stderr) = run(&test.data, &correct);
    assert!(code == 2 && stderr.contains("the address of an order that is SHIPPED cannot be corrected"), "{stderr}");
}

#[test]
fn options_set_the_same_fields_as_a_file_and_reach_the_pick_list() {
    let test = AddressTest::new();
    let required = ["--name", "Acme", "--street", "1 High Street", "--postal-code", "LS1", "--city", "Leeds"];
    let place = ["--country", "gb", "--region", "eu"];
    let optional = ["--line2", "Unit 4", "--state", "West Yorkshire", "--phone", "0113 496 0000"];
    let arguments = [&["orders", "address", "acme"][..], &required, &place, &optional].concat();
    let (code, _, stderr) = run(&test.data, &["orders", "address", "acme"]);
    assert!(code == 2 && stderr.contains("the account acme has no shipping address"), "{code} {stderr}");
    assert_eq!(run(&test.data, &arguments).0, 0);
    let (_, shown, _) = run(&test.data, &["orders", "address", "acme"]);
    assert_eq!(shown, "Acme, 1 High Street, Unit 4, LS1 Leeds, West Yorkshire, gb, 0113 496 0000\n");
    let (_, csv, _) = run(&test.data, &["orders", "pick-list", "ams", "--csv"]);
    let mut lines = csv.lines();
    let header = "order,placed_at,name,street,line2,postal_code,city,state,country,phone,product,quantity";
    assert_eq!(lines.next().map(|line| line.replace('"', "")).as_deref(), Some(header));
    let expected = r#","Acme","1 High Street","Unit 4","LS1","Leeds","West Yorkshire","gb","0113 496 0000","beans",2"#;
    assert!(lines.next().unwrap().ends_with(expected), "{csv}");
    let slips = test.folder.path().join("slips.html");
    assert_eq!(run(&test.data, &["orders", "pick-list", "ams", "--slips", slips.to_str().unwrap()]).0, 0);
    let slips = std::fs::read_to_string(slips).unwrap();
    for expected in ["Example Shop", "UNITED KINGDOM", "Phone: 0113 496 0000"] {
        assert!(slips.contains(expected), "{expected}: {slips}");
    }

    let file = test.write("address.json", JSON_ADDRESS);
    // The columns are: the options, and a part of the error.
    for (options, expected) in [
        (&["--street", "1 High Street"][..], "--postal-code <CODE>"),
        (&["--phone", "0113 496 0000"], "--name <NAME>"),
        (&["--order", "2027-01-31.01JZXCVBNM0123456789ABCDEF"], "give the new address of the order"),
        (&["--file", &file, "--name", "Acme"], "cannot be used with"),
        (&["--file", &file, "--phone", "0113 496 0000"], "cannot be used with"),
        (&["--phone", "none"], "must be a phone number such as +44 113 496 0000"),
        (&["--line2", ""], "must be 1 to 200 characters"),
    ] {
        let (code, _, stderr) = run(&test.data, &[&["orders", "address", "acme"], options].concat());
        assert!(code == 2 && stderr.contains(expected), "{options:?}: {code} {stderr}");
    }
}

#[test]
fn error_in_an_address_file_names_the_field_and_what_is_allowed() {
    let test = AddressTest::new();
    let json_with = |field: &str, value: &str| {
        let mut address: serde_json::Value = serde_json::from_str(JSON_ADDRESS).unwrap();
        address[field] = serde_json::from_str(value).unwrap();
        address.to_string()
    };
    // The columns are: the name and the content of the file, and the end of the error.
    for (name, text, expected) in [
        ("a.json", String::new(), "is not JSON: it ends before it is complete"),
        ("a.json", "name".to_owned(), "is not JSON: error at character 2 of line 1"),
        ("a.json", "{}".to_owned(), "name is required"),
        ("a.json", json_with("street", "null"), "street must be text, not null"),
        (
            "a.json",
            json_with("zip", "\"LS1\""),
            "zip is unknown; allowed names: name, street, line2, postal_code, city",
        ),
        (
            "a.json",
            json_with("phone", "\"home\""),
            "phone must be a phone number such as +44 113 496 0000: from 4 to 15",
        ),
        ("a.json", json_with("line2", "\"a\\nb\""), "line2 must be 1 to 200 characters without control characters"),
        ("a.json", json_with("country", "\"atlantis\""), "there is no country atlantis; the existing ids are: gb, nl"),
        ("a.json", json_with("region", "\"na sa\""), "region must be"),
        ("a.toml", "name = ".to_owned(), "is not TOML: "),
        ("a.toml", "name = \"A\"\n".to_owned(), "street is required"),
        ("a.toml", TOML_ADDRESS.replace("\"1011\"", "1011"), "postal_code must be text, not 1011"),
    ] {
        let file = test.write(name, &text);
        let (code, _, stderr) = run(&test.data, &["orders", "address", "acme", "--file", &file]);
        assert!(code == 2 && stderr.contains(expected), "{text}: {code} {stderr}");
    }
    let (code, _, stderr) = run(&test.data, &["orders", "address", "acme", "--file", "missing.json"]);
    assert!(code == 2 && stderr.contains("missing.json: "), "{code} {stderr}");
}
