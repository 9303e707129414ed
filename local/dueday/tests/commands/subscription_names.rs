//! Tests of the names of a subscription in commands: its id, its external id, or only its account.

use crate::shop::Shop;

#[test]
fn subscription_is_named_by_its_id_by_its_external_id_or_by_its_account_alone() {
    let shop = Shop::open();
    let by_id = shop.run("why acme {acme}");
    assert_eq!(shop.run("why acme sub-1"), by_id);
    assert_eq!(shop.run("why acme"), by_id);
    assert!(shop.run("subscription change bell sub-2 --price 13.99").contains("13.99 EUR from "));
    assert!(shop.run("subscription pause acme").contains("paused"));
    for (command, expected) in [
        ("why acme sub-2", "there is no subscription sub-2 in the account acme"),
        ("why acme 01JZXCVBNM0123456789ABCDEF", "there is no subscription 01JZXCVBNM0123456789ABCDEF in the account"),
        ("why unknown", "there is no account unknown"),
        ("account card-link acme --subscription sub-2 --api https://api.example.com", "there is no subscription sub-2"),
    ] {
        let (code, text) = shop.run_command(command);
        assert!(code == 2 && text.contains(expected), "{command}: {text}");
    }
}

#[test]
fn command_lists_the_subscriptions_of_an_account_that_has_several() {
    let shop = Shop::open();
    let file = shop.folder.path().join("second.csv");
    let csv = "account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date\n\
               acme,a@example.com,Acme Ltd,,sub-9,silver,Silver plan,31,12.99,EUR,cus_1,pm_card_visa,\n";
    std::fs::write(&file, csv).unwrap();
    shop.run(&format!("import {}", file.display()));
    let (code, text) = shop.run_command("subscription pause acme");
    let first = shop.fill_placeholders("  {acme}  Gold plan, active, external id sub-1\n");
    assert!(code == 2 && text.contains(&first), "{text}");
    assert!(text.starts_with("error: the account acme has 2 subscriptions; name one of them:\n"), "{text}");
    assert!(text.contains("  Silver plan, active, external id sub-9\n"), "{text}");
}
