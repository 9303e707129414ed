//! Tests of the function of the sandbox gateway: through its handler, and with concurrent requests to its table.

mod concurrency;
mod handler;
mod lambda_url;
