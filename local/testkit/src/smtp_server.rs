//! An SMTP server on loopback. The crate `mailin` implements the protocol; this module only connects it to a socket and
//! injects faults.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mailin::{Action, AuthMechanism, Handler, Response, Session, SessionBuilder, response};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A mail that the server received.
#[derive(Clone, Default, Debug)]
pub struct ReceivedMail {
    /// The address of the sender, in the envelope.
    pub from: String,
    /// The addresses of the recipients, in the envelope.
    pub to: Vec<String>,
    /// The message with its headers.
    pub raw: Vec<u8>,
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fault of the server while it receives a mail.
#[derive(Clone, Copy, Debug)]
pub enum ServerFault {
    /// The server rejects the sender's address with this status code.
    RejectsSender(u16),
    /// The server rejects the recipient's address with this status code.
    RejectsRecipient(u16),
    /// The server rejects the complete message with this status code.
    RejectsMessage(u16),
    /// The server receives the recipient's address, and closes the connection without a response.
    ClosesAfterRecipient,
    /// The server accepts the complete message, and closes the connection without a response.
    ClosesAfterMessage,
}

/// When the server refuses the mails to one recipient.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusedAt {
    /// The server refuses the recipient's address.
    Recipient,
    /// The server accepts the address, and refuses the complete message.
    Message,
}

/// The refusal of all mails to one recipient: the step, the status code and the text of the response.
type Refusal = (RefusedAt, u16, String);

/// An SMTP server that stores the mails which it accepts. Like many real servers, it does not support SMTPUTF8, unless a
/// test turns it on.
#[derive(Clone, Default, Debug)]
pub struct SmtpServer {
    received: Arc<Mutex<Vec<ReceivedMail>>>,
    faults: Arc<Mutex<VecDeque<ServerFault>>>,
    /// The recipients whose mails the server always refuses.
    refusals: Arc<Mutex<HashMap<String, Refusal>>>,
    supports_smtputf8: bool,
    /// The user and the password with which clients must log in; `None` if they need none.
    login: Arc<Mutex<Option<(String, String)>>>,
    /// The number of refused logins.
    refused_logins: Arc<Mutex<usize>>,
    /// The mail that the server is receiving.
    current: ReceivedMail,
}

impl SmtpServer {
    /// Starts a server, and returns it with its URL.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start() -> (Self, String) {
        Self::default().start_listening().await
    }

    /// Starts a server to which clients must log in with `user` and `password`. Returns it with its URL.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start_with_login(user: &str, password: &str) -> (Self, String) {
        let server = Self::default();
        server.set_login(user, password);
        server.start_listening().await
    }

    /// Starts a server that supports addresses which are not ASCII (RFC 6531). Returns it with its URL.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn start_with_smtputf8() -> (Self, String) {
        Self { supports_smtputf8: true, ..Self::default() }.start_listening().await
    }

    /// Makes the server refuse all mails to `recipient`, at the step `at`, with the status `code` and a text that
    /// repeats the address.
    pub fn refuse_mails_to(&self, recipient: &str, at: RefusedAt, code: u16, text: &str) {
        let text = format!("{text} <{recipient}>");
        lock_mutex(&self.refusals).insert(recipient.to_owned(), (at, code, text));
    }

    /// Makes the server accept mails to `recipient` again.
    pub fn accept_mails_to(&self, recipient: &str) {
        lock_mutex(&self.refusals).remove(recipient);
    }

    /// Replaces the user and the password. Open connections stay logged in.
    pub fn set_login(&self, user: &str, password: &str) {
        *lock_mutex(&self.login) = Some((user.to_owned(), password.to_owned()));
    }

    /// Returns the number of refused logins.
    pub fn refused_login_count(&self) -> usize {
        *lock_mutex(&self.refused_logins)
    }

    /// Starts to listen on a free port of the loopback interface. Returns the server with its URL.
    async fn start_listening(self) -> (Self, String) {
        let server = self;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let url = format!("smtp://{}", listener.local_addr().expect("an address"));
        let serving = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut builder = SessionBuilder::new("smtp-server");
                if lock_mutex(&serving.login).is_some() {
                    builder.enable_auth(AuthMechanism::Plain).insecure_enable_plaintext_auth();
                }
                let session = builder.build(IpAddr::V4(Ipv4Addr::LOCALHOST), serving.clone());
                let supports_smtputf8 = serving.supports_smtputf8;
                // An I/O error needs no handling here: the client notices the broken connection.
                tokio::spawn(async move { serve_smtp_client(stream, session, supports_smtputf8).await.ok() });
            }
        });
        (server, url)
    }

    /// Returns the mails that the server has accepted.
    pub fn received_mails(&self) -> Vec<ReceivedMail> {
        lock_mutex(&self.received).clone()
    }

    /// Sets the fault for the next mail.
    pub fn set_fault(&self, fault: ServerFault) {
        *lock_mutex(&self.faults) = VecDeque::from([fault]);
    }

    /// Returns the fault for the next mail, if it has one.
    fn pending_fault(&self) -> Option<ServerFault> {
        lock_mutex(&self.faults).front().copied()
    }

    fn remove_fault(&self) {
        lock_mutex(&self.faults).pop_front();
    }

    /// Returns the response with which the server refuses the mail to the current recipient at the step `at`; `None` if
    /// it does not refuse the mail.
    fn find_refusal(&self, at: RefusedAt) -> Option<Response> {
        let refusals = lock_mutex(&self.refusals);
        let (refused_at, code, text) = self.current.to.iter().find_map(|to| refusals.get(to))?;
        (*refused_at == at).then(|| Response::custom(*code, text.clone()))
    }
}

impl Handler for SmtpServer {
    fn auth_plain(&mut self, _: &str, user: &str, password: &str) -> Response {
        if lock_mutex(&self.login)
            .as_ref()
            .is_some_and(|login| (login.0.as_str(), login.1.as_str()) == (user, password))
        {
            return response::AUTH_OK;
        }
        *lock_mutex(&self.refused_logins) += 1;
        response::INVALID_CREDENTIALS
    }

    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        self.current = ReceivedMail { from: from.to_owned(), ..ReceivedMail::default() };
        match self.pending_fault() {
            Some(ServerFault::RejectsSender(code)) => {
                self.remove_fault();
                Response::custom(code, format!("<{from}> rejected"))
            }
            _ => response::OK,
        }
    }

    fn rcpt(&mut self, to: &str) -> Response {
        self.current.to.push(to.to_owned());
        if let Some(refusal) = self.find_refusal(RefusedAt::Recipient) {
            return refusal;
        }
        match self.pending_fault() {
            Some(ServerFault::RejectsRecipient(code)) => {
                self.remove_fault();
                Response::custom(code, format!("<{to}> rejected"))
            }
            Some(ServerFault::ClosesAfterRecipient) => {
                self.remove_fault();
                close_without_response()
            }
            _ => response::OK,
        }
    }

    fn data(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.current.raw.extend_from_slice(part);
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        if let Some(refusal) = self.find_refusal(RefusedAt::Message) {
            return close_after_response(refusal);
        }
        lock_mutex(&self.received).push(std::mem::take(&mut self.current));
        match self.pending_fault() {
            Some(ServerFault::RejectsMessage(code)) => {
                self.remove_fault();
                lock_mutex(&self.received).pop();
                // Close the connection: `mailin` would treat further lines as part of the message.
                close_after_response(Response::custom(code, "message for billing@acme.example.com rejected".to_owned()))
            }
            Some(ServerFault::ClosesAfterMessage) => {
                self.remove_fault();
                close_without_response()
            }
            _ => response::OK,
        }
    }
}

/// Returns a marker response with the status code 0, which SMTP does not use: `serve_smtp_client` then closes the connection
/// without a response.
fn close_without_response() -> Response {
    close_after_response(Response::custom(0, String::new()))
}

/// Returns `response`, after which `serve_smtp_client` closes the connection.
fn close_after_response(mut response: Response) -> Response {
    response.action = Action::Close;
    response
}

/// The parameter of MAIL FROM for addresses that are not ASCII.
const SMTPUTF8_PARAMETER: &[u8] = b" SMTPUTF8";
/// The line of the response to EHLO before which the server writes that it supports SMTPUTF8.
const LINE_AFTER_SMTPUTF8: &str = "250 8BITMIME";

/// Serves the SMTP commands of one client until the connection is closed. `mailin` does not know SMTPUTF8, so this
/// function adds it to the response to EHLO, and removes it from MAIL FROM.
async fn serve_smtp_client(
    stream: TcpStream,
    mut session: Session<SmtpServer>,
    supports_smtputf8: bool,
) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    write.write_all(&session.greeting().buffer()?).await?;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await? > 0 {
        if supports_smtputf8 && line.starts_with(b"MAIL FROM:") {
            let start = line.windows(SMTPUTF8_PARAMETER.len()).position(|bytes| bytes == SMTPUTF8_PARAMETER);
            start.map(|start| line.drain(start..start + SMTPUTF8_PARAMETER.len()));
        }
        let response = session.process(&line);
        line.clear();
        let mut text = String::from_utf8_lossy(&response.buffer()?).into_owned();
        if supports_smtputf8 {
            text = text.replace(LINE_AFTER_SMTPUTF8, &format!("250-SMTPUTF8\r\n{LINE_AFTER_SMTPUTF8}"));
        }
        match response.action {
            Action::NoReply => {}
            Action::Close if response.code == 0 => return Ok(()),
            Action::Close => return write.write_all(text.as_bytes()).await,
            Action::Reply | Action::UpgradeTls => write.write_all(text.as_bytes()).await?,
        }
    }
    Ok(())
}
