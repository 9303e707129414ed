//! Checks of a DynamoDB table: its keys and indexes, expiry, recovery, stream and protection.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{
    ContinuousBackupsDescription, IndexStatus, KeySchemaElement, KeyType, PointInTimeRecoveryStatus, ProjectionType,
    StreamViewType, TableDescription, TableStatus, TimeToLiveDescription, TimeToLiveStatus,
};
use dynamo::TableSchema;
use orders_table::ORDERS_SCHEMA;
use store::{SCHEMA, TIME_TO_LIVE};

use super::aws_cli::AwsError;
use super::check_result::DoctorCheck;

/// The checks of one table of a deployment: the required schema of the table, and the texts in the output of the
/// checks.
#[derive(Debug)]
pub struct TableChecks {
    /// The required keys, indexes and projections of the table.
    schema: &'static TableSchema<2>,
    /// The name of the check whether the table exists.
    pub table: &'static str,
    /// The name of the check of the keys and indexes.
    keys: &'static str,
    /// The name of the check of the expiry of items.
    expiry: &'static str,
    /// The name of the check of the point-in-time recovery.
    recovery: &'static str,
    /// The name of the check of the stream.
    stream: &'static str,
    /// The name of the check of the deletion protection.
    protection: &'static str,
    /// The advice if the table does not exist.
    deploy: &'static str,
    /// The problem that is reported if items do not expire.
    without_expiry: &'static str,
    /// The problem that is reported if the table has no stream.
    without_stream: &'static str,
    /// The name of the template's parameter for the stream of a table that exists already.
    stream_parameter: &'static str,
}

/// The checks of the payments table.
pub static PAYMENTS_TABLE: TableChecks = TableChecks {
    schema: &SCHEMA,
    table: "table",
    keys: "keys and indexes of the table",
    expiry: "expiry of items (TTL)",
    recovery: "point-in-time recovery",
    stream: "stream of the table",
    protection: "deletion protection",
    deploy: "Deploy it (sam deploy), or check the region",
    without_expiry: "it is off, so receipts and records are never deleted",
    without_stream: "the table has none, so no events are published and no notices are mailed",
    stream_parameter: "ExistingTableStream",
};

/// The checks of the order desk's table.
pub static ORDERS_TABLE: TableChecks = TableChecks {
    schema: &ORDERS_SCHEMA,
    table: "orders table",
    keys: "keys and indexes of the orders table",
    expiry: "expiry of items (TTL) of the orders table",
    recovery: "point-in-time recovery of the orders table",
    stream: "stream of the orders table",
    protection: "deletion protection of the orders table",
    deploy: "Deploy it (sam deploy), or correct the parameter ExistingOrdersTableStream",
    without_expiry: "it is off, so stored responses to repeated requests are never deleted",
    without_stream: "the table has none, so no events of orders are published and no mails about shipments are sent",
    stream_parameter: "ExistingOrdersTableStream",
};

/// Makes the `checks` for the table `name` with the requests DescribeTable, DescribeTimeToLive and
/// DescribeContinuousBackups. Returns the check results and the ARN of the table's stream, if the table has a stream.
/// `is_prod` states whether the table contains data of paying customers.
pub async fn check_dynamodb_table(
    client: &Client,
    checks: &TableChecks,
    name: &str,
    is_prod: bool,
) -> (Vec<DoctorCheck>, Option<String>) {
    let described = match client.describe_table().table_name(name).send().await {
        Ok(described) => described.table.unwrap_or_else(|| TableDescription::builder().build()),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_resource_not_found_exception()) => {
            let detail = format!("there is no table {name:?} in this region");
            return (vec![DoctorCheck::wrong(checks.table, detail, checks.deploy)], None);
        }
        Err(error) => {
            return (
                vec![DoctorCheck::not_checked(checks.table, request_failure_reason(&error, "dynamodb:DescribeTable"))],
                None,
            );
        }
    };
    let expiry = match client.describe_time_to_live().table_name(name).send().await {
        Ok(response) => checks.check_expiry(response.time_to_live_description.as_ref(), name),
        Err(error) => {
            DoctorCheck::not_checked(checks.expiry, request_failure_reason(&error, "dynamodb:DescribeTimeToLive"))
        }
    };
    let recovery = match client.describe_continuous_backups().table_name(name).send().await {
        Ok(response) => checks.check_recovery(response.continuous_backups_description.as_ref(), name),
        Err(error) => DoctorCheck::not_checked(
            checks.recovery,
            request_failure_reason(&error, "dynamodb:DescribeContinuousBackups"),
        ),
    };
    let findings = vec![
        checks.check_status(&described),
        checks.check_keys(&described),
        expiry,
        recovery,
        checks.check_stream(&described),
        checks.check_protection(&described, name, is_prod),
    ];
    (findings, described.latest_stream_arn)
}

/// Returns the reason why a request that needs `permission` failed.
fn request_failure_reason<E: ProvideErrorMetadata>(error: &SdkError<E>, permission: &str) -> String {
    match error.code() {
        Some(code) => AwsError::from_code(code, permission, error.message().unwrap_or_default()).to_string(),
        None => "DynamoDB does not respond".to_owned(),
    }
}

impl TableChecks {
    /// Checks that the table can be used.
    fn check_status(&self, table: &TableDescription) -> DoctorCheck {
        match &table.table_status {
            Some(TableStatus::Active | TableStatus::Updating) => DoctorCheck::good(self.table, "it exists"),
            status => {
                let status = status.as_ref().map_or("unknown", TableStatus::as_str);
                DoctorCheck::wrong(self.table, format!("its status is {status}"), "Wait until it is ACTIVE")
            }
        }
    }

    /// Describes the first difference of the keys, indexes and projections between `table` and the schema of this
    /// program.
    fn schema_difference(&self, table: &TableDescription) -> Option<String> {
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
        if !has_keys(table.key_schema(), self.schema.keys.partition, self.schema.keys.sort) {
            return Some("its keys are not PK and SK".to_owned());
        }
        self.schema.indexes.iter().find_map(|expected| {
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

    /// Checks the keys, the indexes and the projections of the table.
    fn check_keys(&self, table: &TableDescription) -> DoctorCheck {
        match self.schema_difference(table) {
            None => DoctorCheck::good(self.keys, "as in the template"),
            Some(difference) => {
                let advice =
                    "Deploy the template again; see \"Upgrade an index of an older version\" in docs/operations.md";
                DoctorCheck::wrong(self.keys, difference, advice)
            }
        }
    }

    /// Checks that items expire by the attribute [`TIME_TO_LIVE`].
    fn check_expiry(&self, described: Option<&TimeToLiveDescription>, name: &str) -> DoctorCheck {
        let advice = format!(
            "Run `aws dynamodb update-time-to-live --table-name {name} --time-to-live-specification \
         Enabled=true,AttributeName={TIME_TO_LIVE}`"
        );
        let attribute = described.and_then(TimeToLiveDescription::attribute_name).unwrap_or_default();
        match described.and_then(TimeToLiveDescription::time_to_live_status) {
            Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) if attribute == TIME_TO_LIVE => {
                DoctorCheck::good(self.expiry, format!("on, with the expected attribute {TIME_TO_LIVE}"))
            }
            Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => {
                let detail = format!("on, but with the attribute {attribute} instead of {TIME_TO_LIVE}");
                DoctorCheck::wrong(self.expiry, detail, format!("First switch off this expiry of items. {advice}"))
            }
            _ => DoctorCheck::wrong(self.expiry, self.without_expiry, advice),
        }
    }

    /// Checks that the table can be restored to a point in time.
    fn check_recovery(&self, described: Option<&ContinuousBackupsDescription>, name: &str) -> DoctorCheck {
        let recovery = described.and_then(ContinuousBackupsDescription::point_in_time_recovery_description);
        match recovery.and_then(|recovery| recovery.point_in_time_recovery_status()) {
            Some(PointInTimeRecoveryStatus::Enabled) => DoctorCheck::good(self.recovery, "it is on"),
            _ => {
                let advice = format!(
                    "Run `aws dynamodb update-continuous-backups --table-name {name} \
                 --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true`"
                );
                DoctorCheck::wrong(self.recovery, "it is off, so damaged data cannot be restored", advice)
            }
        }
    }

    /// Checks that the stream of the table contains the new and the old images of items.
    fn check_stream(&self, table: &TableDescription) -> DoctorCheck {
        let stream = table.stream_specification().filter(|stream| stream.stream_enabled());
        match stream.and_then(|stream| stream.stream_view_type()) {
            Some(StreamViewType::NewAndOldImages) => DoctorCheck::good(self.stream, "it has new and old images"),
            Some(other) => {
                let detail = format!("it contains {}, so no events can be computed", other.as_str());
                let advice = format!(
                    "Switch it off, deploy with the view type NEW_AND_OLD_IMAGES, and set {}",
                    self.stream_parameter
                );
                DoctorCheck::wrong(self.stream, detail, advice)
            }
            None => {
                let advice =
                    format!("Deploy the template again, or set {} for an existing table", self.stream_parameter);
                DoctorCheck::wrong(self.stream, self.without_stream, advice)
            }
        }
    }

    /// Checks that a table in production cannot be deleted by accident.
    fn check_protection(&self, table: &TableDescription, name: &str, is_prod: bool) -> DoctorCheck {
        if table.deletion_protection_enabled() == Some(true) {
            return DoctorCheck::good(self.protection, "it is on");
        }
        if !is_prod {
            return DoctorCheck::good(self.protection, "it is off, which Stage=dev allows");
        }
        let advice = format!("Run `aws dynamodb update-table --table-name {name} --deletion-protection-enabled`");
        DoctorCheck::wrong(self.protection, "it is off, so one request can delete all data", advice)
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::{PointInTimeRecoveryDescription, StreamSpecification};

    use emulator::Engine;
    use orders_table::OrdersTable;
    use store::Table;

    use super::*;

    /// Creates the payments table on the embedded engine. Returns the engine and the description of the table.
    async fn create_payments_table() -> (Engine, TableDescription) {
        let engine = Engine::in_memory();
        Table::new(engine.client(), "payments").create_if_absent().await.unwrap();
        let described = engine.client().describe_table().table_name("payments").send().await.unwrap();
        (engine, described.table.unwrap())
    }

    /// Returns the detail of a good or wrong check result.
    fn check_result_detail(finding: &DoctorCheck) -> String {
        serde_json::to_value(finding).unwrap()["detail"].as_str().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn table_of_the_program_has_the_right_keys_and_each_difference_is_found() {
        let (_engine, right) = create_payments_table().await;
        assert_eq!(PAYMENTS_TABLE.check_keys(&right), DoctorCheck::good(PAYMENTS_TABLE.keys, "as in the template"));
        assert!(PAYMENTS_TABLE.check_status(&right).is_good());

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
            assert_eq!(check_result_detail(&PAYMENTS_TABLE.check_keys(&table)), expected);
        }
    }

    #[tokio::test]
    async fn table_of_the_order_desk_has_keys_and_indexes_of_its_own() {
        let (engine, payments) = create_payments_table().await;
        OrdersTable::new(engine.client(), "orders").create_if_absent().await.unwrap();
        let orders = engine.client().describe_table().table_name("orders").send().await.unwrap().table.unwrap();
        assert_eq!(ORDERS_TABLE.check_keys(&orders), DoctorCheck::good(ORDERS_TABLE.keys, "as in the template"));
        for (checks, other) in [(&ORDERS_TABLE, &payments), (&PAYMENTS_TABLE, &orders)] {
            assert_eq!(check_result_detail(&checks.check_keys(other)), "the keys of the index GSI-1 are different");
        }
        let no_stream = TableDescription::builder().build();
        let advice = "Deploy the template again, or set ExistingOrdersTableStream for an existing table";
        let expected = DoctorCheck::wrong("stream of the orders table", ORDERS_TABLE.without_stream, advice);
        assert_eq!(ORDERS_TABLE.check_stream(&no_stream), expected);
    }

    #[tokio::test]
    async fn missing_table_and_unsupported_request_are_different_findings() {
        let (engine, _) = create_payments_table().await;
        let (findings, stream) = check_dynamodb_table(&engine.client(), &PAYMENTS_TABLE, "other", true).await;
        assert_eq!((findings.len(), findings[0].check, stream), (1, PAYMENTS_TABLE.table, None));
        assert_eq!(check_result_detail(&findings[0]), "there is no table \"other\" in this region");
        let (findings, _) = check_dynamodb_table(&engine.client(), &PAYMENTS_TABLE, "payments", true).await;
        let recovery = findings.iter().find(|finding| finding.check == PAYMENTS_TABLE.recovery).unwrap();
        assert_eq!(
            *recovery,
            DoctorCheck::not_checked(PAYMENTS_TABLE.recovery, "AWS returned ValidationException"),
            "the engine has no backups"
        );
    }

    #[test]
    fn time_to_live_of_the_table_must_be_on_and_use_the_attribute_ttl() {
        let ttl = |status, attribute: &str| {
            TimeToLiveDescription::builder().time_to_live_status(status).attribute_name(attribute).build()
        };
        assert!(PAYMENTS_TABLE.check_expiry(Some(&ttl(TimeToLiveStatus::Enabled, "TTL")), "t").is_good());
        assert!(!PAYMENTS_TABLE.check_expiry(Some(&ttl(TimeToLiveStatus::Enabled, "ExpiresAt")), "t").is_good());
        assert!(!PAYMENTS_TABLE.check_expiry(Some(&ttl(TimeToLiveStatus::Disabled, "TTL")), "t").is_good());
        assert!(!PAYMENTS_TABLE.check_expiry(None, "t").is_good());
    }

    #[test]
    fn point_in_time_recovery_of_the_table_must_be_on() {
        let backups = |status| {
            let recovery = PointInTimeRecoveryDescription::builder().point_in_time_recovery_status(status).build();
            ContinuousBackupsDescription::builder()
                .continuous_backups_status("ENABLED".into())
                .point_in_time_recovery_description(recovery)
                .build()
                .unwrap()
        };
        assert!(PAYMENTS_TABLE.check_recovery(Some(&backups(PointInTimeRecoveryStatus::Enabled)), "t").is_good());
        assert!(!PAYMENTS_TABLE.check_recovery(Some(&backups(PointInTimeRecoveryStatus::Disabled)), "t").is_good());
        assert!(!PAYMENTS_TABLE.check_recovery(None, "t").is_good());
    }

    #[test]
    fn stream_of_the_table_must_have_new_and_old_images() {
        let table = |view: Option<StreamViewType>| {
            let stream = view.map(|view| {
                StreamSpecification::builder().stream_enabled(true).stream_view_type(view).build().unwrap()
            });
            TableDescription::builder().set_stream_specification(stream).build()
        };
        assert!(PAYMENTS_TABLE.check_stream(&table(Some(StreamViewType::NewAndOldImages))).is_good());
        assert!(
            check_result_detail(&PAYMENTS_TABLE.check_stream(&table(Some(StreamViewType::KeysOnly))))
                .starts_with("it contains KEYS_ONLY")
        );
        assert!(!PAYMENTS_TABLE.check_stream(&table(None)).is_good());
    }

    #[test]
    fn deletion_protection_must_be_on_in_prod() {
        let table = |on| TableDescription::builder().deletion_protection_enabled(on).build();
        assert!(PAYMENTS_TABLE.check_protection(&table(true), "t", true).is_good());
        assert!(!PAYMENTS_TABLE.check_protection(&table(false), "t", true).is_good());
        assert!(PAYMENTS_TABLE.check_protection(&table(false), "t", false).is_good());
    }
}
