//! Events on their way to programs of the merchant's, by HTTP: signed, and to no address inside.

mod address;
mod secret;
mod sender;

pub use address::{Reach, is_public};
pub use secret::{Secret, SecretError};
pub use sender::{Answer, EndpointUrl, Sender, TIMEOUT, UrlError};
