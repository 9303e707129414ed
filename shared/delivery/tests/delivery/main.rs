//! Webhooks that are delivered, and mails about what has happened.

mod notices;
mod webhooks;
