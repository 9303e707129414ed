use config::Env;
use lambda_runtime::{Error, run, service_fn};

// A single thread is enough: a Lambda function with 256 MB of memory has only a fraction of a CPU core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let publisher = events_function::set_up_publisher(Env::of_process()).await?;
    run(service_fn(|event| events_function::publish_stream_records(&publisher, event))).await
}
