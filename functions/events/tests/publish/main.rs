//! Tests that publish the stream of the embedded engine with the real AWS SDK, partly through the real Lambda runtime
//! loop, to a strict stand-in for EventBridge that rejects invalid requests.

mod crash;
mod event_bridge;
mod heartbeat;
mod lambda;
mod orders;
mod poison;
mod webhook_endpoints;
mod world;
