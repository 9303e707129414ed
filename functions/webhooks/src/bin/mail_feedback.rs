use lambda_runtime::{Error, run, service_fn};
use shared::config::{Config, Env};
use webhooks::MailFeedback;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let feedback = MailFeedback::new(Config::read(Env::process())?.connect().await);
    run(service_fn(|event| webhooks::handle(&feedback, event))).await
}
