//! The actor of a request: the person or program whose changes the action log records.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use billing::{Actor, ActorName};

use crate::Caller;

/// The subject of a request's verified token, stored as an extension of the request; `None` if the token has no
/// subject. If the server checks no tokens, the request has no such extension, and the actor of the request is
/// anonymous.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenSubject(pub Option<ActorName>);

/// The actor of a request, from its [`Caller`] and its [`TokenSubject`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestActor(pub Actor);

impl<S: Sync> FromRequestParts<S> for RequestActor {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let subject = parts.extensions.get::<TokenSubject>().cloned();
        Ok(Self(match (parts.extensions.get::<Caller>(), subject) {
            (Some(Caller::Operator(_)), Some(TokenSubject(subject))) => Actor::Operator(subject),
            (Some(Caller::Account { .. }), Some(TokenSubject(subject))) => Actor::Account(subject),
            (Some(_), None) | (None, _) => Actor::Anonymous,
        }))
    }
}
