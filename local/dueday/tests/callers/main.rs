//! Sends each route of the API, as each kind of caller, to `dueday --auth`. The routes are those of the OpenAPI documents,
//! so that no new route can be forgotten.

mod matrix;
#[path = "../commands/process/mod.rs"]
mod process;
mod routes;
mod server;
#[path = "../commands/terminal/mod.rs"]
mod terminal;
mod token_command;
