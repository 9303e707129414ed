//! Selects the service that sends the mails of a command.

use std::sync::Arc;

use config::Env;
use mail::{MAIL_URL, MERCHANT, Mailer, Outbox};

use crate::Failure;
use crate::context::CommandContext;

/// Returns the mail service at the URL in DUEDAY_MAIL_URL. If the variable is not set and the table is local, returns
/// the outbox of the data folder, which only writes mails to files.
///
/// # Errors
/// [`Failure::Refused`] if mails reach customers and the merchant's name is not given, or if the table is on AWS and
/// DUEDAY_MAIL_URL is not set. [`Failure::Mail`] if the URL or the sender is invalid.
pub async fn create_configured_mailer(context: &CommandContext) -> Result<Arc<dyn Mailer>, Failure> {
    let from = context.options.mail_from();
    Ok(match Env::of_process().get(&MAIL_URL) {
        Some(_) if context.options.mails_reach_customers() && context.options.setting(&MERCHANT).is_none() => {
            let reason =
                "DUEDAY_MAIL_URL is set, so mails reach customers: also give --merchant with the merchant's name";
            return Err(Failure::Refused(reason.to_owned()));
        }
        Some(url) => mail::create_mailer(&url, from)?,
        None if context.options.table().is_some() => {
            let reason = "with --table, set DUEDAY_MAIL_URL to the URL of the service that sends mails";
            return Err(Failure::Refused(reason.to_owned()));
        }
        None => Arc::new(Outbox::new(context.options.data.join("outbox"), from)?),
    })
}
