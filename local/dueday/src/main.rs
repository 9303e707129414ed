//! The entry point of the command `dueday`: sets up logging and runs the command.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use dueday::Arguments;
use mimalloc::MiMalloc;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

// The allocator mimalloc is faster than the default allocator, also for the requests of the embedded server.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The levels of log lines unless the environment variable `RUST_LOG` sets others. For libraries, no variable enables the
/// levels `debug` and `trace`, at which they log names, addresses and secrets.
const LOG_LEVELS: &str = "warn,dynoxide=error,aws_config=off,aws_smithy_runtime=off,sweep::start_checks=off,\
                          sweep::row_log=off,sweep::shard_walk=off";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::read();
    // A simulation causes errors on purpose, so it writes no log lines. Other commands log warnings and errors, but not
    // those that they print themselves: the errors of the AWS SDK, and the rows that a run reports as failed.
    let default_levels = if arguments.is_simulation() { "off" } else { LOG_LEVELS };
    let requested = std::env::var("RUST_LOG").ok().filter(|levels| !levels.trim().is_empty());
    let requested = requested.and_then(|levels| levels.parse().ok());
    let requested: Targets = requested.unwrap_or_else(|| default_levels.parse().expect("the default levels are valid"));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // Escape sequences for colours would make log lines in a file or a pipe hard to read and to search.
        .with_ansi(console::colors_enabled_stderr())
        // If standard error is closed, no log line can be written. The subscriber would report this error on standard
        // error, too, and would panic. So the subscriber must not report its own errors.
        .log_internal_errors(false)
        .without_time()
        .with_target(false);
    tracing_subscriber::registry().with(logs::limit_library_levels(&requested)).with(lines).init();
    dueday::run_command_line(arguments).await.into()
}
