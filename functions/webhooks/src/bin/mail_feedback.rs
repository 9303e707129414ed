use aws_lambda_events::sns::SnsEvent;
use config::Env;
use inbound::MailFeedback;
use lambda_runtime::{Diagnostic, Error, LambdaEvent, run, service_fn};
use store::{TableConfig, sdk};

// A Lambda of 256 MB has a fraction of a core.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    logs::init();
    let feedback = MailFeedback::new(TableConfig::read(Env::process())?.over(&sdk().await));
    run(service_fn(|event| handle(&feedback, event))).await
}

/// One invocation.
///
/// # Errors
/// What could not be worked on: SNS hands it over again.
async fn handle(feedback: &MailFeedback, event: LambdaEvent<SnsEvent>) -> Result<(), Diagnostic> {
    for record in event.payload.records {
        if let Err(error) = feedback.take(&record.sns.message).await {
            tracing::error!(message = record.sns.message_id, %error, "news of a mail was not worked on");
            return Err(Diagnostic { error_type: "MailFeedback".to_owned(), error_message: error.to_string() });
        }
    }
    Ok(())
}
