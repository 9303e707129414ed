//! Tests of `dueday orders address`, which sets the address of a customer or of an order.

use std::path::PathBuf;

use crate::orders::{STOCK, folder_with_payments, run};

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
fn optional_fields_reach_the_pick_list_and_the_packing_slips() {
    let test = AddressTest::new();
    let required = ["--name", "Acme", "--street", "1 High Street", "--postal-code", "LS1", "--city", "Leeds"];
    let place = ["--country", "gb", "--region", "eu"];
    let optional = ["--line2", "Unit 4", "--state", "West Yorkshire", "--phone", "0113 496 0000"];
    let arguments = [&["orders", "address", "acme"][..], &required, &place, &optional].concat();
    assert_eq!(run(&test.data, &arguments).0, 0);
    let (_, csv, _) = run(&test.data, &["orders", "pick-list", "ams", "--csv"]);
    let mut lines = csv.lines();
    let header = "order,placed_at,name,street,line2,postal_code,city,state,country,phone,product,quantity";
    assert_eq!(lines.next(), Some(header));
    let expected = ",Acme,1 High Street,Unit 4,LS1,Leeds,West Yorkshire,gb,0113 496 0000,beans,2";
    assert!(lines.next().unwrap().ends_with(expected), "{csv}");
    let slips = test.folder.path().join("slips.html");
    assert_eq!(run(&test.data, &["orders", "pick-list", "ams", "--slips", slips.to_str().unwrap()]).0, 0);
    let slips = std::fs::read_to_string(slips).unwrap();
    for expected in ["Example Shop", "UNITED KINGDOM", "Phone: 0113 496 0000"] {
        assert!(slips.contains(expected), "{expected}: {slips}");
    }

    // The columns are: the options, and a part of the error.
    for (options, expected) in [
        (&[][..], "--name <NAME>"),
        (&["--phone", "none"], "must be a phone number such as +44 113 496 0000"),
        (&["--line2", ""], "must be 1 to 200 characters"),
    ] {
        let (code, _, stderr) = run(&test.data, &[&["orders", "address", "acme"], options].concat());
        assert!(code == 2 && stderr.contains(expected), "{options:?}: {code} {stderr}");
    }
}
