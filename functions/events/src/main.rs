use lambda_runtime::{Error, run, service_fn, tracing};
use shared::config::Env;

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let publisher = events::set_up(Env::process()).await?;
    run(service_fn(|event| events::publish(&publisher, event))).await
}
