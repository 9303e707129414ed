use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let publisher = events_function::set_up(Env::process()).await?;
    run(service_fn(|event| events_function::publish(&publisher, event))).await
}
