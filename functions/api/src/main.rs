use std::sync::Arc;

use api::{Api, Claims};
use lambda_http::{Error, run, tracing};
use shared::clock::SystemClock;
use shared::config::{Config, Env};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let env = Env::process();
    let config = Config::read(env)?;
    let api = Api::new(config.connect().await, &config, Arc::new(SystemClock)).await?;
    run(api.lambda_router(Claims::read(env)?)).await
}
