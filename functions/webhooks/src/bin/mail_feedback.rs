use lambda_runtime::{Error, run, service_fn};
use shared::config::Env;
use shared::table::{TableConfig, sdk};
use webhooks::MailFeedback;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let feedback = MailFeedback::new(TableConfig::read(Env::process())?.over(&sdk().await));
    run(service_fn(|event| webhooks::handle(&feedback, event))).await
}
