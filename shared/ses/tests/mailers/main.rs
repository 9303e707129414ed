//! Tests that mails arrive unchanged at an independent SMTP server and at a strict stand-in for Amazon SES, and that
//! errors have the correct transience and contain no mail address.

mod example_mails;
mod ses;
mod smtp;
mod smtp_server;
