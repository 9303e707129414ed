//! How mails leave: what arrives at a strict stand-in for Amazon SES is what was
//! composed. Errors tell whose fault it is, and no address.

mod letter;
mod ses;
