//! What tests use: doubles of gateways, mailers and mail services, a Lambda Runtime API that runs the functions, and whole
//! deployments in memory, on a clock that is set.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod examples;
mod faulty;
mod function;
mod in_memory;
mod letterbox;
mod runtime_api;
pub mod sample;
mod script;
mod ses_server;
mod settings;
mod unread_queue;

pub use examples::answer_examples;
pub use faulty::Faulty;
pub use function::Function;
pub use in_memory::InMemory;
pub use letterbox::Letterbox;
pub use runtime_api::{Answer, RuntimeApi};
pub use script::{Script, first, nth};
pub use ses_server::{SesFault, SesMail, SesServer};
pub use settings::config;
pub use unread_queue::UnreadQueue;
