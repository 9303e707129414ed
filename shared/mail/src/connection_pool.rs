//! The open connections to a mail server.

use std::fmt;
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::client::AsyncSmtpConnection;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::login::SmtpLogin;
use super::mail_server::MailServer;
use super::smtp_response::SmtpStep;

/// The maximum time to end a connection with QUIT after an error.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of open connections that wait for the next mail.
const MAX_IDLE_CONNECTIONS: usize = 10;

/// An error of the mail library, and the step of the mail at which it occurred.
pub(crate) struct SmtpStepError {
    pub step: SmtpStep,
    pub error: Error,
}

/// The connections to a mail server that wait for the next mail.
pub(crate) struct ConnectionPool {
    server: MailServer,
    idle: Mutex<IdleConnections>,
}

/// The open connections, which were opened with the same login.
#[derive(Default)]
struct IdleConnections {
    /// `None` if the server needs no login, or the URL contains it.
    login: Option<SmtpLogin>,
    connections: Vec<AsyncSmtpConnection>,
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("server", &self.server).finish_non_exhaustive()
    }
}

impl ConnectionPool {
    /// Creates a pool of connections to `server`, without connections.
    pub(crate) fn new(server: MailServer) -> Self {
        Self { server, idle: Mutex::default() }
    }

    /// Returns a connection that uses `login`: an open one, if it still works, or else a new one.
    pub(crate) async fn take(&self, login: Option<&SmtpLogin>) -> Result<AsyncSmtpConnection, SmtpStepError> {
        loop {
            let open = {
                let mut idle = self.idle.lock().await;
                // After the login was replaced, the open connections are closed.
                if idle.login.as_ref() != login {
                    *idle = IdleConnections { login: login.cloned(), connections: Vec::new() };
                }
                idle.connections.pop()
            };
            let Some(mut connection) = open else { break };
            if connection.test_connected().await {
                return Ok(connection);
            }
        }
        let connected = self.server.connect(login).await;
        connected.map_err(|error| SmtpStepError { step: SmtpStep::Connection, error })
    }

    /// Keeps `connection`, which was opened with `login`, for the next mail.
    pub(crate) async fn put_back(&self, connection: AsyncSmtpConnection, login: Option<&SmtpLogin>) {
        let mut idle = self.idle.lock().await;
        if idle.login.as_ref() == login && idle.connections.len() < MAX_IDLE_CONNECTIONS {
            idle.connections.push(connection);
        }
    }
}

/// Ends `connection` with QUIT, and closes it.
pub(crate) async fn end_connection(connection: &mut AsyncSmtpConnection) {
    // A server that does not respond to QUIT changes nothing: the connection is closed when it is dropped.
    let _ = timeout(QUIT_TIMEOUT, connection.abort()).await;
}
