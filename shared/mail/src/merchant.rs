//! Who the customer deals with, as mails and pages say it.

use serde::Serialize;

use billing::EmailAddress;

/// Who the customer deals with.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Merchant {
    /// `DUEDAY_MERCHANT`.
    pub name: String,
    /// `DUEDAY_MERCHANT_ADDRESS`: one line.
    pub postal_address: Option<String>,
    /// `DUEDAY_MERCHANT_TAX_ID`.
    pub tax_id: Option<String>,
    /// `DUEDAY_MERCHANT_LOGO`: an image, by its URL.
    pub logo_url: Option<String>,
    /// `DUEDAY_SUPPORT_EMAIL`: whom customers ask.
    pub support_email: Option<EmailAddress>,
    /// `DUEDAY_REPLY_TO`: where answers to mails go, if not to their sender.
    pub reply_to: Option<EmailAddress>,
    /// `DUEDAY_ACCOUNT_URL`: where customers look after their subscriptions.
    pub account_url: Option<String>,
}
