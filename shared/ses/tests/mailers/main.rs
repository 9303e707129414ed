//! How mails leave: what arrives at a mail server that others have written, and at a strict stand-in for Amazon SES, is what was
//! composed. Errors tell whose fault it is, and no address.

mod letter;
mod ses;
mod sink;
mod smtp;
