//! The user and the password of a mail server.

use lettre::transport::smtp::authentication::Credentials;

/// The user and the password of a mail server.
pub type SmtpLogin = Credentials;

/// Parses the user and the password of a mail server, `USER:PASSWORD`.
///
/// # Errors
/// If `text` is not allowed, returns an error text that describes what is allowed, without the password.
pub fn parse_smtp_login(text: &str) -> Result<SmtpLogin, String> {
    match text.trim().split_once(':') {
        Some((user, password)) if !user.is_empty() && !password.is_empty() => {
            Ok(Credentials::new(user.to_owned(), password.to_owned()))
        }
        _ => Err("must be the user and the password of the mail server, as USER:PASSWORD".to_owned()),
    }
}
