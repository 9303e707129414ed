use std::process::ExitCode;

use clap::Parser;
use dueday::Arguments;
use dueday::arguments::Command;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A simulation's trouble is of its own making.
    let told = if matches!(arguments.command, Some(Command::Simulate(_))) {
        "off"
    } else {
        "warn,dynoxide=error,aws_config=off"
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(told));
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
