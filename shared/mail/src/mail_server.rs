//! A mail server that a URL selects, and connections to it.

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::DEFAULT_MECHANISMS;
use lettre::transport::smtp::client::{AsyncSmtpConnection, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use percent_encoding::percent_decode_str;
use url::Url;

use super::login::SmtpLogin;
use super::{MailError, MailFault};

/// The port of a mail server for connections that are not encrypted at first (RFC 5321), if the URL contains no port.
const SMTP_PORT: u16 = 25;
/// The port of a mail server for connections that the client encrypts with STARTTLS (RFC 6409).
const SUBMISSION_PORT: u16 = 587;
/// The port of a mail server for encrypted connections (RFC 8314).
const SUBMISSIONS_PORT: u16 = 465;

/// A mail server, and how to connect to it.
#[derive(Debug)]
pub(crate) struct MailServer {
    host: String,
    port: u16,
    /// When a connection is encrypted: never, with STARTTLS if the server supports it, always with STARTTLS, or from the
    /// first byte.
    encryption: Tls,
    /// The name of this machine that the server gets with the command EHLO.
    client_name: ClientId,
    /// The user and the password of the URL; `None` if it contains none.
    login: Option<SmtpLogin>,
}

impl MailServer {
    /// Returns the server at `url`. The path of the URL is the name of this machine for the server.
    ///
    /// # Errors
    /// Returns an error if `url` is not a valid SMTP URL, or allows unencrypted connections to another machine. The error
    /// does not contain the URL, because the URL may contain a password.
    pub(crate) fn parse(url: &str) -> Result<Self, MailError> {
        let invalid_url = || MailError::new(MailFault::Settings, "the URL is not a valid SMTP URL");
        let url = Url::parse(url).map_err(|_| invalid_url())?;
        if !is_always_encrypted_url(&url) && !is_local_mail_server(&url) {
            let reason = "the connection must be encrypted: use smtps://, or smtp:// with ?tls=required";
            return Err(MailError::new(MailFault::Settings, reason));
        }
        Self::of_url(&url).ok_or_else(invalid_url)
    }

    /// Returns the server at `url`; `None` if `url` is not a URL of a mail server.
    fn of_url(url: &Url) -> Option<Self> {
        let host = url.host_str()?.to_owned();
        let tls = || TlsParameters::new(host.clone()).ok();
        // The first parameter `tls` counts.
        let parameter = url.query_pairs().find(|(name, _)| name == "tls").map(|(_, value)| value.into_owned());
        let (default_port, encryption) = match (url.scheme(), parameter.as_deref()) {
            ("smtp", None) => (SMTP_PORT, Tls::None),
            ("smtp", Some("opportunistic")) => (SUBMISSION_PORT, Tls::Opportunistic(tls()?)),
            ("smtp", Some("required")) => (SUBMISSION_PORT, Tls::Required(tls()?)),
            ("smtps", _) => (SUBMISSIONS_PORT, Tls::Wrapper(tls()?)),
            _ => return None,
        };
        let client_name = match url.path().trim_matches('/') {
            "" => ClientId::default(),
            name => ClientId::Domain(name.to_owned()),
        };
        let decode = |text: &str| percent_decode_str(text).decode_utf8().ok().map(String::from);
        let login = match url.password() {
            Some(password) => Some(SmtpLogin::new(decode(url.username())?, decode(password)?)),
            None => None,
        };
        Some(Self { port: url.port().unwrap_or(default_port), host, encryption, client_name, login })
    }

    /// Connects to the server, and logs in with `login`, or else with the login of the URL.
    pub(crate) async fn connect(&self, login: Option<&SmtpLogin>) -> Result<AsyncSmtpConnection, Error> {
        let tls = match &self.encryption {
            Tls::Wrapper(tls) => Some(tls.clone()),
            _ => None,
        };
        let address = (self.host.trim_matches(['[', ']']), self.port);
        let mut connection = AsyncSmtpConnection::connect_tokio1(address, None, &self.client_name, tls, None).await?;
        match &self.encryption {
            Tls::Required(tls) => connection.starttls(tls.clone(), &self.client_name).await?,
            Tls::Opportunistic(tls) if connection.can_starttls() => {
                connection.starttls(tls.clone(), &self.client_name).await?;
            }
            _ => {}
        }
        if let Some(login) = login.or(self.login.as_ref()) {
            connection.auth(DEFAULT_MECHANISMS, login).await?;
        }
        Ok(connection)
    }
}

/// Returns whether connections to the mail server at `url` are always encrypted.
fn is_always_encrypted_url(url: &Url) -> bool {
    // The first parameter `tls` counts, as in lettre.
    let tls = url.query_pairs().find(|(name, _)| name == "tls");
    url.scheme() == "smtps" || tls.is_some_and(|(_, value)| value == "required")
}

/// Returns whether the mail server at `url` is on this machine. The host is compared as text, because the URL parser
/// recognizes IPv4 addresses only in URLs of web schemes such as `https`.
fn is_local_mail_server(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unencrypted_url_is_rejected_and_the_error_does_not_contain_the_password() {
        for url in
            ["smtps://u:p@mail.example.com:465", "smtp://u:p@mail.example.com:587?tls=required", "smtp://127.0.0.1:25"]
        {
            assert!(MailServer::parse(url).is_ok(), "{url}");
        }
        for url in [
            "smtp://user:secret@mail.example.com",
            "smtp://localhost.example.com:25?secret",
            "smtp://127.0.0.1.example.com?secret",
            "smtp://localhost@mail.example.com?secret",
            "smtp://mail.example.com:587?secret=tls=required",
            "smtp://mail.example.com:587?tls=opportunistic&tls=required&secret",
            "http://user:secret@mail.example.com?tls=required",
            "secret",
        ] {
            let error = MailServer::parse(url).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
