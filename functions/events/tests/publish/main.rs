//! The stream of the embedded engine, published: over the real Lambda runtime loop and the real SDK, to a stand-in for
//! EventBridge that is strict about what a request may hold.

mod crash;
mod event_bridge;
mod lambda;
mod poison;
mod world;
