//! Tests that mails arrive unchanged at an independent SMTP server and at a strict stand-in for Amazon SES, and that
//! errors are correctly marked as transient or permanent and contain no mail address.

mod example_mails;
mod ses;
mod smtp;
