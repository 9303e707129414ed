//! [`Merchant`]: the name and contact data of the merchant, for mails and receipts.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::MailKind;
use billing::EmailAddress;

/// The merchant's name and contact data, as shown in mails and receipts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Merchant {
    /// `DUEDAY_MERCHANT`: the name of the merchant.
    pub name: String,
    /// `DUEDAY_MERCHANT_ADDRESS`: the postal address in one line.
    pub postal_address: Option<String>,
    /// `DUEDAY_MERCHANT_TAX_ID`: the tax id of the merchant.
    pub tax_id: Option<String>,
    /// `DUEDAY_MERCHANT_LOGO`: the URL of the merchant's logo.
    pub logo_url: Option<String>,
    /// `DUEDAY_SUPPORT_EMAIL`: the address for customers' questions.
    pub support_email: Option<EmailAddress>,
    /// `DUEDAY_REPLY_TO`: the address for replies to mails, if different from the sender.
    pub reply_to: Option<EmailAddress>,
    /// `DUEDAY_ACCOUNT_URL`: the web page on which customers manage their subscriptions.
    pub account_url: Option<String>,
    /// `DUEDAY_MAILS_OFF` and `DUEDAY_MAILS_SENT_ELSEWHERE`: the kinds of mails that Dueday does not send.
    #[serde(skip)]
    pub unsent_mails: BTreeSet<MailKind>,
}
