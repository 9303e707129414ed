//! A mail server on loopback. The protocol is the crate `mailin`'s, none of it ours; here it gets a socket.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use mailin::{Action, Handler, Response, Session, SessionBuilder, response};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A mail that was taken.
#[derive(Clone, Default)]
pub struct Taken {
    pub from: String,
    pub to: Vec<String>,
    pub raw: Vec<u8>,
}

/// What it says to the next mails.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    /// This, to their recipient.
    ToRecipient(u16),
    /// This, when it has the whole mail.
    AtTheEnd(u16),
    /// Nothing: it hangs up when it has heard the recipient.
    HangsUp,
    /// Nothing: it hangs up when it has the whole mail.
    HangsUpAtTheEnd,
}

#[derive(Clone, Default)]
pub struct Sink {
    taken: Arc<Mutex<Vec<Taken>>>,
    says: Arc<Mutex<VecDeque<Says>>>,
    draft: Taken,
}

impl Sink {
    /// A sink, and its URL.
    pub async fn start() -> (Self, String) {
        let sink = Self::default();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("smtp://{}", listener.local_addr().unwrap());
        let serving = sink.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let session = SessionBuilder::new("sink").build(IpAddr::V4(Ipv4Addr::LOCALHOST), serving.clone());
                // A connection that breaks is the client's to notice.
                tokio::spawn(async { serve(stream, session).await.ok() });
            }
        });
        (sink, url)
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }

    /// What it says to the next mail.
    pub fn next(&self, says: Says) {
        *self.says.lock().unwrap() = VecDeque::from([says]);
    }

    fn says(&self) -> Option<Says> {
        self.says.lock().unwrap().front().copied()
    }

    fn said(&self) {
        self.says.lock().unwrap().pop_front();
    }
}

impl Handler for Sink {
    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        self.draft = Taken { from: from.to_owned(), ..Taken::default() };
        response::OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        self.draft.to.push(to.to_owned());
        match self.says() {
            Some(Says::ToRecipient(code)) => {
                self.said();
                Response::custom(code, format!("<{to}> is not for us"))
            }
            Some(Says::HangsUp) => {
                self.said();
                hung_up()
            }
            _ => response::OK,
        }
    }

    fn data(&mut self, part: &[u8]) -> std::io::Result<()> {
        self.draft.raw.extend_from_slice(part);
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        self.taken.lock().unwrap().push(std::mem::take(&mut self.draft));
        match self.says() {
            Some(Says::AtTheEnd(code)) => {
                self.said();
                self.taken.lock().unwrap().pop();
                // Left open, `mailin` would take what follows for more of the mail.
                closing(Response::custom(code, "not for billing@acme.example.com".to_owned()))
            }
            Some(Says::HangsUpAtTheEnd) => {
                self.said();
                hung_up()
            }
            _ => response::OK,
        }
    }
}

/// No code is 0: nothing is said, and the connection is closed.
fn hung_up() -> Response {
    closing(Response::custom(0, String::new()))
}

fn closing(mut response: Response) -> Response {
    response.action = Action::Close;
    response
}

async fn serve(stream: TcpStream, mut session: Session<Sink>) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read);
    write.write_all(&session.greeting().buffer()?).await?;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await? > 0 {
        let said = session.process(&line);
        line.clear();
        match said.action {
            Action::NoReply => {}
            Action::Close if said.code == 0 => return Ok(()),
            Action::Close => return write.write_all(&said.buffer()?).await,
            Action::Reply | Action::UpgradeTls => write.write_all(&said.buffer()?).await?,
        }
    }
    Ok(())
}
