//! Test helpers: fakes of gateways, mailers and mail services, a Lambda Runtime API that runs the functions' binaries,
//! and whole deployments in memory with a simulated clock.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod encryption;
mod examples;
mod faulty;
mod fixed_resolver;
mod function;
mod generated_section;
mod in_memory;
mod issuers;
mod log_capture;
mod recorded_mails;
mod replaced_secret;
mod runtime_api;
pub mod sample;
mod script;
mod secrets_manager;
mod ses_server;
mod settings;
mod smtp_server;
mod unread_queue;

pub use encryption::{ENCRYPTION_KEY, encryption_keys, items_with_plain_secret};
pub use examples::check_openapi_examples;
pub use faulty::Faulty;
pub use fixed_resolver::FixedResolver;
pub use function::Function;
pub use generated_section::check_generated_section;
pub use in_memory::InMemoryDeployment;
pub use issuers::{ExpectedRights, IssuerToken, issuer_tokens};
pub use log_capture::ask_all_log_subscribers;
pub use recorded_mails::RecordedMails;
pub use replaced_secret::replaced_secret;
pub use runtime_api::{InvocationResult, RuntimeApi};
pub use script::{Script, fault_at_call, fault_in_first_calls, test_fault_at_each_call, without_faults};
pub use secrets_manager::start_secrets_manager;
pub use ses_server::{SesFault, SesMail, SesServer};
pub use settings::config;
pub use smtp_server::{ReceivedMail, ServerFault, SmtpServer};
pub use unread_queue::UnreadQueue;
