//! Test helpers: fakes of gateways, mailers and mail services, and a Lambda Runtime API that runs the functions'
//! binaries.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod encryption;
mod event_schema;
mod fault_script;
mod fixed_resolver;
mod generated_section;
mod issuers;
mod lambda_function;
mod log_capture;
mod openapi_examples;
mod recorded_mails;
mod replaced_secret;
mod runtime_api;
mod sam_local;
mod sam_variables;
mod sample;
mod secrets_manager;
mod ses_server;
mod smtp_server;
mod test_config;
mod test_length;
mod unread_queue;

pub use encryption::{ENCRYPTION_KEY, encryption_keys, items_with_plain_secret};
pub use event_schema::event_schema_errors;
pub use fault_script::{
    FAULTS_AFTER_EACH_CALL, FAULTS_AT_EACH_CALL, FaultScript, fault_at_call, fault_in_first_calls,
    test_fault_at_each_call, without_faults,
};
pub use fixed_resolver::FixedResolver;
pub use generated_section::{check_generated_file, check_generated_section};
pub use issuers::{ExpectedRights, IssuerToken, issuer_tokens};
pub use lambda_function::LambdaFunction;
pub use log_capture::{LogLines, capture_log_lines, capture_logs};
pub use openapi_examples::check_openapi_examples;
pub use recorded_mails::RecordedMails;
pub use replaced_secret::create_replaced_secret;
pub use runtime_api::{InvocationResult, RuntimeApi};
pub use sam_local::{SamLocalCommand, run_sam_local_commands, sam_local_commands};
pub use sample::{sample_account, sample_action, sample_subscription};
pub use secrets_manager::start_secrets_manager;
pub use ses_server::{SesFault, SesMail, SesServer};
pub use smtp_server::{ReceivedMail, RefusedAt, ServerFault, SmtpServer};
pub use test_config::read_test_config;
pub use test_length::short_or_long;
pub use unread_queue::UnreadQueue;
