//! Checks of the payments table: its keys and indexes, expiry, recovery, stream and protection.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{
    ContinuousBackupsDescription, IndexStatus, KeySchemaElement, KeyType, PointInTimeRecoveryStatus, ProjectionType,
    StreamViewType, TableDescription, TableStatus, TimeToLiveDescription, TimeToLiveStatus,
};
use store::{SCHEMA, TIME_TO_LIVE};

use super::aws_program::AwsError;
use super::finding::Finding;

const TABLE: &str = "table";
const KEYS: &str = "keys and indexes of the table";
const EXPIRY: &str = "expiry of items (TTL)";
const RECOVERY: &str = "point-in-time recovery";
const STREAM: &str = "stream of the table";
const PROTECTION: &str = "deletion protection";

/// Checks the table `name` with the requests DescribeTable, DescribeTimeToLive and DescribeContinuousBackups. Returns the
/// findings and the ARN of the table's stream, if it has one. `is_prod` says whether it contains customers' payments.
pub async fn check(client: &Client, name: &str, is_prod: bool) -> (Vec<Finding>, Option<String>) {
    let described = match client.describe_table().table_name(name).send().await {
        Ok(described) => described.table.unwrap_or_else(|| TableDescription::builder().build()),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => {
            let detail = format!("there is no table {name:?} in this region");
            return (vec![Finding::wrong(TABLE, detail, "Deploy it (sam deploy), or check the region")], None);
        }
        Err(error) => return (vec![Finding::not_checked(TABLE, reason(&error, "dynamodb:DescribeTable"))], None),
    };
    let expiry = match client.describe_time_to_live().table_name(name).send().await {
        Ok(response) => check_expiry(response.time_to_live_description.as_ref(), name),
        Err(error) => Finding::not_checked(EXPIRY, reason(&error, "dynamodb:DescribeTimeToLive")),
    };
    let recovery = match client.describe_continuous_backups().table_name(name).send().await {
        Ok(response) => check_recovery(response.continuous_backups_description.as_ref(), name),
        Err(error) => Finding::not_checked(RECOVERY, reason(&error, "dynamodb:DescribeContinuousBackups")),
    };
    let findings = vec![
        check_status(&described),
        check_keys(&described),
        expiry,
        recovery,
        check_stream(&described),
        check_protection(&described, name, is_prod),
    ];
    (findings, described.latest_stream_arn)
}

/// Returns why a request for `permission` failed.
fn reason<E: ProvideErrorMetadata>(error: &SdkError<E>, permission: &str) -> String {
    match error.code() {
        Some(code) => AwsError::from_code(code, permission, error.message().unwrap_or_default()).to_string(),
        None => "DynamoDB does not respond".to_owned(),
    }
}

fn check_status(table: &TableDescription) -> Finding {
    match &table.table_status {
        Some(TableStatus::Active | TableStatus::Updating) => Finding::good(TABLE, "it exists"),
        status => {
            let status = status.as_ref().map_or("unknown", TableStatus::as_str);
            Finding::wrong(TABLE, format!("its status is {status}"), "Wait until it is ACTIVE")
        }
    }
}

/// Returns the first difference between the keys, indexes and projections of `table` and those of the program.
fn schema_difference(table: &TableDescription) -> Option<String> {
    let type_of = |name: &str| {
        let definitions = table.attribute_definitions();
        definitions
            .iter()
            .find(|definition| definition.attribute_name() == name)
            .map(|definition| definition.attribute_type().as_str())
    };
    let has_keys = |elements: &[KeySchemaElement], partition: (&str, &str), sort: (&str, &str)| {
        let has = |(name, kind): (&str, &str), key_type: KeyType| {
            let is_key =
                |element: &KeySchemaElement| element.attribute_name() == name && *element.key_type() == key_type;
            elements.iter().any(is_key) && type_of(name) == Some(kind)
        };
        elements.len() == 2 && has(partition, KeyType::Hash) && has(sort, KeyType::Range)
    };
    if !has_keys(table.key_schema(), SCHEMA.keys.partition, SCHEMA.keys.sort) {
        return Some("its keys are not PK and SK".to_owned());
    }
    SCHEMA.indexes.iter().find_map(|expected| {
        let indexes = table.global_secondary_indexes();
        let Some(index) = indexes.iter().find(|index| index.index_name() == Some(expected.name)) else {
            return Some(format!("the index {} does not exist", expected.name));
        };
        if !has_keys(index.key_schema(), expected.keys.partition, expected.keys.sort) {
            return Some(format!("the keys of the index {} are different", expected.name));
        }
        if !matches!(index.index_status(), Some(IndexStatus::Active | IndexStatus::Updating)) {
            return Some(format!("the index {} is not ready", expected.name));
        }
        let projection = index.projection()?;
        let projected = projection.non_key_attributes();
        let is_absent = |name: &&&str| !projected.iter().any(|projected| projected == **name);
        let absent = expected.attributes.into_iter().flatten().find(is_absent);
        let absent = absent.filter(|_| projection.projection_type() != Some(&ProjectionType::All))?;
        Some(format!("the index {} does not contain the attribute {absent}", expected.name))
    })
}

fn check_keys(table: &TableDescription) -> Finding {
    match schema_difference(table) {
        None => Finding::good(KEYS, "as in the template"),
        Some(difference) => {
            let advice =
                "Deploy the template again; see \"Upgrade an index of an older version\" in docs/operations.md";
            Finding::wrong(KEYS, difference, advice)
        }
    }
}

fn check_expiry(described: Option<&TimeToLiveDescription>, name: &str) -> Finding {
    let advice = format!(
        "Run `aws dynamodb update-time-to-live --table-name {name} --time-to-live-specification \
         Enabled=true,AttributeName={TIME_TO_LIVE}`"
    );
    let attribute = described.and_then(TimeToLiveDescription::attribute_name).unwrap_or_default();
    match described.and_then(TimeToLiveDescription::time_to_live_status) {
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) if attribute == TIME_TO_LIVE => {
            Finding::good(EXPIRY, format!("it uses the attribute {TIME_TO_LIVE}"))
        }
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => {
            let detail = format!("it uses the attribute {attribute}, not {TIME_TO_LIVE}");
            Finding::wrong(EXPIRY, detail, format!("Switch it off first. {advice}"))
        }
        _ => Finding::wrong(EXPIRY, "it is off, so receipts and records are never deleted", advice),
    }
}

fn check_recovery(described: Option<&ContinuousBackupsDescription>, name: &str) -> Finding {
    let recovery = described.and_then(ContinuousBackupsDescription::point_in_time_recovery_description);
    match recovery.and_then(|recovery| recovery.point_in_time_recovery_status()) {
        Some(PointInTimeRecoveryStatus::Enabled) => Finding::good(RECOVERY, "it is on"),
        _ => {
            let advice = format!(
                "Run `aws dynamodb update-continuous-backups --table-name {name} \
                 --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true`"
            );
            Finding::wrong(RECOVERY, "it is off, so damaged data cannot be restored", advice)
        }
    }
}

fn check_stream(table: &TableDescription) -> Finding {
    let stream = table.stream_specification().filter(|stream| stream.stream_enabled());
    match stream.and_then(|stream| stream.stream_view_type()) {
        Some(StreamViewType::NewAndOldImages) => Finding::good(STREAM, "it has new and old images"),
        Some(other) => {
            let detail = format!("it contains {}, so no events can be computed", other.as_str());
            Finding::wrong(
                STREAM,
                detail,
                "Switch it off, deploy with the view type NEW_AND_OLD_IMAGES, and set ExistingTableStream",
            )
        }
        None => {
            let detail = "the table has none, so no events are published and no notices are mailed";
            Finding::wrong(
                STREAM,
                detail,
                "Deploy the template again, or set ExistingTableStream for an existing table",
            )
        }
    }
}

fn check_protection(table: &TableDescription, name: &str, is_prod: bool) -> Finding {
    if table.deletion_protection_enabled() == Some(true) {
        return Finding::good(PROTECTION, "it is on");
    }
    if !is_prod {
        return Finding::good(PROTECTION, "it is off, which Stage=dev allows");
    }
    let advice = format!("Run `aws dynamodb update-table --table-name {name} --deletion-protection-enabled`");
    Finding::wrong(PROTECTION, "it is off, so one request can delete all data", advice)
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{PointInTimeRecoveryDescription, StreamSpecification};
    use chrono::TimeDelta;
    use emulator::Engine;
    use store::Table;

    use super::*;

    /// Creates the table on the embedded engine, and returns its description.
    async fn table() -> (Engine, TableDescription) {
        let engine = Engine::memory();
        Table::new(engine.client(), "payments", TimeDelta::days(190)).create_if_absent().await.unwrap();
        let described = engine.client().describe_table().table_name("payments").send().await.unwrap();
        (engine, described.table.unwrap())
    }

    fn detail(finding: &Finding) -> String {
        serde_json::to_value(finding).unwrap()["detail"].as_str().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn table_of_the_program_has_the_right_keys_and_each_difference_is_found() {
        let (_engine, right) = table().await;
        assert_eq!(check_keys(&right), Finding::good(KEYS, "as in the template"));
        assert!(check_status(&right).is_good());

        let mut other_sort_key = right.clone();
        other_sort_key.key_schema.as_mut().unwrap()[1].attribute_name = "Date".to_owned();
        let mut other_type = right.clone();
        other_type.attribute_definitions.as_mut().unwrap().iter_mut().for_each(|definition| {
            if definition.attribute_name == "Shard" {
                definition.attribute_type = "S".into();
            }
        });
        let mut no_index = right.clone();
        no_index.global_secondary_indexes.as_mut().unwrap().retain(|index| index.index_name() != Some("GSI-2"));
        let mut older_index = right.clone();
        for index in older_index.global_secondary_indexes.as_mut().unwrap() {
            let projected = index.projection.as_mut().unwrap().non_key_attributes.as_mut().unwrap();
            projected.retain(|name| name != "CancelPeriod");
        }
        let mut creating = right.clone();
        creating.global_secondary_indexes.as_mut().unwrap()[0].index_status = Some(IndexStatus::Creating);
        for (table, expected) in [
            (other_sort_key, "its keys are not PK and SK"),
            (other_type, "the keys of the index GSI-1 are different"),
            (no_index, "the index GSI-2 does not exist"),
            (older_index, "the index GSI-2 does not contain the attribute CancelPeriod"),
            (creating, "the index GSI-1 is not ready"),
        ] {
            assert_eq!(detail(&check_keys(&table)), expected);
        }
    }

    #[tokio::test]
    async fn missing_table_and_unsupported_request_are_different_findings() {
        let (engine, _) = table().await;
        let (findings, stream) = check(&engine.client(), "other", true).await;
        assert_eq!((findings.len(), findings[0].check, stream), (1, TABLE, None));
        assert_eq!(detail(&findings[0]), "there is no table \"other\" in this region");
        let (findings, _) = check(&engine.client(), "payments", true).await;
        let recovery = findings.iter().find(|finding| finding.check == RECOVERY).unwrap();
        assert_eq!(
            *recovery,
            Finding::not_checked(RECOVERY, "AWS returned ValidationException"),
            "the engine has no backups"
        );
    }

    #[test]
    fn expiry_must_be_on_and_use_the_attribute_ttl() {
        let ttl = |status, attribute: &str| {
            TimeToLiveDescription::builder().time_to_live_status(status).attribute_name(attribute).build()
        };
        assert!(check_expiry(Some(&ttl(TimeToLiveStatus::Enabled, "TTL")), "t").is_good());
        assert!(!check_expiry(Some(&ttl(TimeToLiveStatus::Enabled, "ExpiresAt")), "t").is_good());
        assert!(!check_expiry(Some(&ttl(TimeToLiveStatus::Disabled, "TTL")), "t").is_good());
        assert!(!check_expiry(None, "t").is_good());
    }

    #[test]
    fn recovery_must_be_on() {
        let backups = |status| {
            let recovery = PointInTimeRecoveryDescription::builder().point_in_time_recovery_status(status).build();
            ContinuousBackupsDescription::builder()
                .continuous_backups_status("ENABLED".into())
                .point_in_time_recovery_description(recovery)
                .build()
                .unwrap()
        };
        assert!(check_recovery(Some(&backups(PointInTimeRecoveryStatus::Enabled)), "t").is_good());
        assert!(!check_recovery(Some(&backups(PointInTimeRecoveryStatus::Disabled)), "t").is_good());
        assert!(!check_recovery(None, "t").is_good());
    }

    #[test]
    fn stream_must_have_new_and_old_images() {
        let table = |view: Option<StreamViewType>| {
            let stream = view.map(|view| {
                StreamSpecification::builder().stream_enabled(true).stream_view_type(view).build().unwrap()
            });
            TableDescription::builder().set_stream_specification(stream).build()
        };
        assert!(check_stream(&table(Some(StreamViewType::NewAndOldImages))).is_good());
        assert!(detail(&check_stream(&table(Some(StreamViewType::KeysOnly)))).starts_with("it contains KEYS_ONLY"));
        assert!(!check_stream(&table(None)).is_good());
    }

    #[test]
    fn deletion_protection_must_be_on_in_prod() {
        let table = |on| TableDescription::builder().deletion_protection_enabled(on).build();
        assert!(check_protection(&table(true), "t", true).is_good());
        assert!(!check_protection(&table(false), "t", true).is_good());
        assert!(check_protection(&table(false), "t", false).is_good());
    }
}
