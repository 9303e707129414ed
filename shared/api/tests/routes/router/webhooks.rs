//! Tests of webhook endpoints and their deliveries: repeated requests, refused addresses, and stored deliveries that
//! cannot be read.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{Delivery, DeliveryKey, DeliveryStatus, Secret};
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock as _, SystemClock};
use encryption::{EncryptionKeys, generate_key};
use store::{Item, Paging, Table};
use testkit::{ENCRYPTION_KEY, encryption_keys, items_with_plain_secret};
