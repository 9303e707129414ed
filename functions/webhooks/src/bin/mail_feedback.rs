//! The Lambda function that handles bounces and complaints about mails.

use aws_lambda_events::sns::SnsEvent;
use config::Env;
use inbound::MailFeedbackHandler;
use lambda_runtime::{Diagnostic, Error, LambdaEvent, run, service_fn};
use store::{TableConfig, load_sdk_config};

// A Lambda function with 256 MB has less than one CPU core, so more threads would not help.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::start_logging();
    let feedback = MailFeedbackHandler::new(TableConfig::read(Env::of_process())?.connect(&load_sdk_config().await));
    run(service_fn(|event| handle_mail_feedback(&feedback, event))).await
}

/// Handles one invocation of the function: marks the addresses that bounced or whose owners complained.
///
/// # Errors
/// If an event about a mail could not be processed. SNS then delivers all events of the invocation again.
async fn handle_mail_feedback(feedback: &MailFeedbackHandler, event: LambdaEvent<SnsEvent>) -> Result<(), Diagnostic> {
    for record in event.payload.records {
        if let Err(error) = feedback.handle(&record.sns.message).await {
            tracing::error!(message = record.sns.message_id, %error, error_type = "MailFeedback", "failed to process a bounce or complaint; SNS delivers it again");
            return Err(Diagnostic { error_type: "MailFeedback".to_owned(), error_message: error.to_string() });
        }
    }
    Ok(())
}
