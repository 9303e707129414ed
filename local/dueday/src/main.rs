//! The entry point of the command `dueday`: sets up logging and runs the command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use dueday::Arguments;
use mimalloc::MiMalloc;
use tracing_subscriber::EnvFilter;

// The allocator mimalloc is faster than the default allocator, also for the requests of the embedded server.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The levels of log lines unless the environment variable `RUST_LOG` sets others.
const LOG_LEVELS: &str = "warn,dynoxide=error,aws_config=off,aws_smithy_runtime=off,sweep::start_checks=off,\
                          sweep::row_log=off,sweep::shard_walk=off";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::read();
    // A simulation causes errors on purpose, so it writes no log lines. Other commands log warnings and errors, but not
    // those that they print themselves: the errors of the AWS SDK, and the rows that a run reports as failed.
    let default_levels = if arguments.is_simulation() { "off" } else { LOG_LEVELS };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_levels));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Escape sequences for colours would make log lines in a file or a pipe hard to read and to search.
        .with_ansi(console::colors_enabled_stderr())
        // If standard error is closed, no log line can be written. The subscriber would report this error on standard
        // error, too, and would panic. So the subscriber must not report its own errors.
        .log_internal_errors(false)
        .without_time()
        .with_target(false)
        .init();
    dueday::run(arguments).await.into()
}
