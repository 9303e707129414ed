//! `dueday`, as it is typed.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use dueday::Arguments;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::read();
    // A simulation's trouble is of its own making; what the SDK meets is told when a command fails.
    let told =
        if arguments.is_simulation() { "off" } else { "warn,dynoxide=error,aws_config=off,aws_smithy_runtime=off" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(told));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would tell of a closed standard error on standard error, and panic.
        .log_internal_errors(false)
        .without_time()
        .with_target(false)
        .init();
    dueday::run(arguments).await.into()
}
