//! Tests of the address of mails about a payment: it is the present one, also if it has changed since the payment.

use billing::Subscription;
use store::Paging;
use testkit::sample_account;

use crate::notices::World;

#[tokio::test]
async fn mail_about_a_payment_goes_to_the_present_address_of_its_subscription() {
    let mut world = World::new("pm_card_visa").await;
    let with_address = |address: Option<&'static str>| {
        move |stored: &Subscription| Subscription { email: address.map(|text| text.parse().unwrap()), ..stored.clone() }
    };
    world.change_subscription(with_address(Some("old@example.com"))).await;
    let events = world.run_payments("2026-03-11T03:00:00Z").await;
    world.notify(&events).await;

    let (account, now) = (sample_account(), "2026-03-11T03:00:00Z".parse().unwrap());
    let table = world.system.deployment.table.clone();
    let receipts = table.get_receipts_by_account(&account.id, &Paging::all(), now).await.unwrap().items;
    for address in [Some("new@example.com"), None] {
        world.change_subscription(with_address(address)).await;
        world.notices.resend(&account, &receipts[0]).await.unwrap();
    }
    let recipients: Vec<String> = world.mailbox.mails().iter().map(|mail| mail.to.as_str().to_owned()).collect();
    assert_eq!(recipients, ["old@example.com", "new@example.com", account.email.as_str()]);
}
