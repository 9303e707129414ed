//! Checks that a person receives the alarms.

use super::aws_cli::{AwsCli, Response, list_field, text_field};
use super::check_result::DoctorCheck;
use super::stack::Stack;

/// The name of the check in the output.
const CHECK_NAME: &str = "receivers of alarms";

/// Checks the subscriptions of the topic to which all alarms are sent.
pub async fn check_alarm_topic(aws: &AwsCli, stack: Option<&Stack>) -> DoctorCheck {
    let Some(stack) = stack else { return DoctorCheck::not_checked(CHECK_NAME, "the stack is not known") };
    let Some(topic) = stack.outputs.get("AlarmTopicArn") else {
        return DoctorCheck::not_checked(CHECK_NAME, "the stack has no output AlarmTopicArn");
    };
    let subscriptions = aws.run(&["sns", "list-subscriptions-by-topic", "--topic-arn", topic]).await;
    check_alarm_subscriptions(subscriptions, stack.is_prod())
}

/// Checks that at least one subscription of the topic is confirmed, and that no subscription waits for confirmation.
/// The check result contains no mail address.
fn check_alarm_subscriptions(response: Response, is_prod: bool) -> DoctorCheck {
    let subscriptions = match response {
        Ok(subscriptions) => subscriptions,
        Err(error) => return DoctorCheck::not_checked(CHECK_NAME, error.to_string()),
    };
    let count = |is_counted: fn(&str) -> bool| {
        let all = list_field(&subscriptions, "Subscriptions");
        all.filter(|subscription| is_counted(text_field(subscription, "SubscriptionArn"))).count()
    };
    let (confirmed, pending) = (count(|arn| arn.starts_with("arn:")), count(|arn| arn == "PendingConfirmation"));
    match (confirmed, pending) {
        (0, 0) if is_prod => DoctorCheck::wrong(
            CHECK_NAME,
            "there are none, so failures stay unnoticed",
            "Deploy with the parameter AlarmEmail",
        ),
        (0, 0) => DoctorCheck::good(CHECK_NAME, "there are none, which Stage=dev allows"),
        (confirmed, 0) => DoctorCheck::good(CHECK_NAME, format!("{confirmed} confirmed")),
        (_, pending) => {
            let advice = "Open the link in the mail of Amazon SNS to each unconfirmed address; `aws sns subscribe` sends it again";
            DoctorCheck::wrong(
                CHECK_NAME,
                format!("{pending} not confirmed: they get no alarms until they are confirmed"),
                advice,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a response of `list-subscriptions-by-topic`, as documented in the AWS CLI reference.
    fn topic_subscriptions_response(arns: &[&str]) -> Response {
        let subscription = |arn: &&str| {
            json!({
                "Owner": "123456789012",
                "Endpoint": "ops@example.com",
                "Protocol": "email",
                "TopicArn": "arn:aws:sns:eu-west-1:123456789012:alarms",
                "SubscriptionArn": arn,
            })
        };
        Ok(json!({"Subscriptions": arns.iter().map(subscription).collect::<Vec<_>>()}))
    }

    #[test]
    fn subscription_to_the_alarm_topic_must_be_confirmed() {
        let confirmed = "arn:aws:sns:eu-west-1:123456789012:alarms:8a21d249-4329-4871-acc6-7be709c6ea7f";
        assert!(check_alarm_subscriptions(topic_subscriptions_response(&[confirmed]), true).is_good());
        assert!(!check_alarm_subscriptions(topic_subscriptions_response(&["PendingConfirmation"]), true).is_good());
        assert!(!check_alarm_subscriptions(topic_subscriptions_response(&["PendingConfirmation"]), false).is_good());
        assert!(
            !check_alarm_subscriptions(topic_subscriptions_response(&[confirmed, "PendingConfirmation"]), true)
                .is_good()
        );
        assert!(!check_alarm_subscriptions(topic_subscriptions_response(&["Deleted"]), true).is_good());
        assert!(!check_alarm_subscriptions(topic_subscriptions_response(&[]), true).is_good());
        assert!(check_alarm_subscriptions(topic_subscriptions_response(&[]), false).is_good());
        let shown = serde_json::to_string(&check_alarm_subscriptions(
            topic_subscriptions_response(&["PendingConfirmation"]),
            true,
        ))
        .unwrap();
        assert!(!shown.contains("ops@"), "{shown}");
    }
}
