//! Sends a request for each route of the API, with the token of each kind of caller, to the server `dueday --auth`. The
//! routes are read from the OpenAPI documents, so the tests also cover each new route.

mod matrix;
#[path = "../commands/process/mod.rs"]
mod process;
mod routes;
mod server;
#[path = "../commands/terminal/mod.rs"]
mod terminal;
mod token_command;
