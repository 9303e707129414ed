use lambda_runtime::{Error, run, service_fn};
use shared::config::Env;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    shared::logs::init();
    let publisher = events::set_up(Env::process()).await?;
    run(service_fn(|event| events::publish(&publisher, event))).await
}
