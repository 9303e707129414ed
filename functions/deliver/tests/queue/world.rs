//! The test environment: the function with its table and its queue.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use billing::{DeliveryKey, Secret, WebhookEndpoint};
use chrono::{DateTime, TimeDelta};
use clock::{Clock, SimulatedClock};
use deliver_function::Deliveries;
use delivery::{AllowedAddresses, Deliverer, EndpointSecrets, QueuedDelivery, Sender};
use emulator::{Engine, Injector, Wire};
use encryption::EncryptionKeys;
use lambda_runtime::{Context, LambdaEvent};
use serde_json::{Value, json};
use sqs::SqsQueue;
