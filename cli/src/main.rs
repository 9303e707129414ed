use std::process::ExitCode;

use clap::Parser;
use dueday::Arguments;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,dynoxide=error,aws_config=off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .init();
    match dueday::run(arguments).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", error.told());
            ExitCode::from(2)
        }
    }
}
