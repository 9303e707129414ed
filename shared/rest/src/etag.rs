//! Entity tags (RFC 9110, section 8.8.3): the version of what is asked about, in quotes.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use utoipa::IntoParams;

use crate::Problem;

/// A response about something that has versions: its version, which becomes the ETag, and the body.
#[derive(Clone, Copy, Debug)]
pub struct WithETag<T>(pub u64, pub T);

impl<T: IntoResponse> IntoResponse for WithETag<T> {
    fn into_response(self) -> Response {
        let Self(version, body) = self;
        ([(header::ETAG, tag(version))], body).into_response()
    }
}

/// The tag of `version`.
fn tag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Which versions the caller wants the request carried out on.
#[derive(Debug, IntoParams)]
#[into_params(names("If-Match"), parameter_in = Header)]
pub struct IfMatch(
    /// The `ETag` of an earlier answer, or `*`: the request is carried out only on that version.
    #[param(value_type = String, pattern = "^(\\*|\"[0-9]+\")$", required = false)]
    Wanted,
);

#[derive(Debug)]
enum Wanted {
    Any,
    /// Whatever is there.
    Existing,
    Tags(Vec<String>),
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if !parts.headers.contains_key(header::IF_MATCH) {
            return Ok(Self(Wanted::Any));
        }
        // Our own tags hold no comma; one that does is none of ours and matches nothing. A list may have empty places.
        let values = parts.headers.get_all(header::IF_MATCH).iter().map(|value| value.to_str().unwrap_or("?"));
        let tags = values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty());
        let tags: Vec<String> = tags.map(str::to_owned).collect();
        let is_tag = |tag: &str| {
            let opaque = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"');
            opaque.and_then(|rest| rest.strip_suffix('"')).is_some_and(|opaque| !opaque.contains('"'))
        };
        match tags.as_slice() {
            [all] if all == "*" => Ok(Self(Wanted::Existing)),
            tags if tags.iter().all(|tag| is_tag(tag)) => Ok(Self(Wanted::Tags(tags.to_vec()))),
            _ => Err(Problem::field("If-Match", "must be the ETag of an earlier answer, in its quotes, or *")),
        }
    }
}

impl IfMatch {
    /// Whether a request on `version` is wanted. Weak tags match nothing (section 13.1.1).
    ///
    /// # Errors
    /// 412.
    pub fn allows(&self, version: u64) -> Result<(), Problem> {
        match &self.0 {
            Wanted::Tags(tags) if !tags.contains(&tag(version)) => Err(Problem::stale()),
            _ => Ok(()),
        }
    }

    /// Whether a request on what is not there is wanted.
    ///
    /// # Errors
    /// 412.
    pub fn allows_absence(&self) -> Result<(), Problem> {
        match self.0 {
            Wanted::Any => Ok(()),
            Wanted::Existing | Wanted::Tags(_) => Err(Problem::stale()),
        }
    }

    /// [`IfMatch::allows`] of what has a version, and [`IfMatch::allows_absence`] of what is not there.
    ///
    /// # Errors
    /// 412.
    pub fn allows_any(&self, version: Option<u64>) -> Result<(), Problem> {
        version.map_or_else(|| self.allows_absence(), |version| self.allows(version))
    }
}
