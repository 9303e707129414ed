//! Sends a request for each route of the API, with the token of each kind of caller, to the server `dueday --auth`. The
//! routes are read from the OpenAPI documents, so the tests also cover each new route.

mod matrix;
mod routes;
mod server;
mod token_command;
