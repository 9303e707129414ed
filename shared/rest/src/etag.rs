//! Entity tags (RFC 9110, section 8.8.3): the version of the returned item, in quotes.

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use utoipa::IntoParams;

use crate::Problem;

/// A response: the version of the returned item, which becomes the header `ETag`, and the body.
#[derive(Clone, Copy, Debug)]
pub struct WithETag<T>(pub u64, pub T);

impl<T: IntoResponse> IntoResponse for WithETag<T> {
    fn into_response(self) -> Response {
        let Self(version, body) = self;
        ([(header::ETAG, format_etag(version))], body).into_response()
    }
}

/// Returns the entity tag of `version`.
fn format_etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// The header `If-Match`: the versions of the stored item on which the request may be carried out.
#[derive(Debug, IntoParams)]
#[into_params(names("If-Match"), parameter_in = Header)]
pub struct IfMatch(
    /// The `ETag` of an earlier response, or `*` for any version of an existing item. The request fails with 412 if the
    /// stored item has another version.
    #[param(value_type = String, pattern = "^(\\*|\"[0-9]+\")$", required = false)]
    AllowedVersions,
);

/// The versions of the stored item that the header `If-Match` allows.
#[derive(Debug)]
enum AllowedVersions {
    /// The request has no `If-Match`: any version is allowed, and the item may be missing.
    Any,
    /// The header is `*`: any version is allowed, but the item must exist.
    Existing,
    /// Only the versions with these entity tags are allowed.
    Tags(Vec<String>),
}

impl<S: Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if !parts.headers.contains_key(header::IF_MATCH) {
            return Ok(Self(AllowedVersions::Any));
        }
        // Entity tags of this API contain no comma, so the header can be split at commas. Empty elements are ignored,
        // as RFC 9110 allows them.
        let values = parts.headers.get_all(header::IF_MATCH).iter().map(|value| value.to_str().unwrap_or("?"));
        let tags = values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty());
        let tags: Vec<String> = tags.map(str::to_owned).collect();
        let is_tag = |tag: &str| {
            let opaque = tag.strip_prefix("W/").unwrap_or(tag).strip_prefix('"');
            opaque.and_then(|rest| rest.strip_suffix('"')).is_some_and(|opaque| !opaque.contains('"'))
        };
        match tags.as_slice() {
            [all] if all == "*" => Ok(Self(AllowedVersions::Existing)),
            tags if tags.iter().all(|tag| is_tag(tag)) => Ok(Self(AllowedVersions::Tags(tags.to_vec()))),
            _ => Err(Problem::invalid_field(
                "If-Match",
                "must be the ETag of an earlier response, with its quotes, or *",
            )),
        }
    }
}

impl IfMatch {
    /// Checks that the header allows `version`, the version of the stored item. A weak tag (`W/"1"`) allows no version
    /// (RFC 9110, section 13.1.1).
    ///
    /// # Errors
    /// 412 if the header does not allow `version`.
    pub fn check_version(&self, version: u64) -> Result<(), Problem> {
        match &self.0 {
            AllowedVersions::Tags(tags) if !tags.contains(&format_etag(version)) => Err(Problem::version_mismatch()),
            _ => Ok(()),
        }
    }

    /// Checks that the header allows the stored item to be missing.
    ///
    /// # Errors
    /// 412 if the request has the header.
    pub fn check_missing_item(&self) -> Result<(), Problem> {
        match self.0 {
            AllowedVersions::Any => Ok(()),
            AllowedVersions::Existing | AllowedVersions::Tags(_) => Err(Problem::version_mismatch()),
        }
    }

    /// Checks the header with [`IfMatch::check_version`] if the item exists, and with [`IfMatch::check_missing_item`]
    /// if it does not (`version` is `None`).
    ///
    /// # Errors
    /// 412 if `version` is a version that the header does not allow. 412 if `version` is `None` and the request has the
    /// header.
    pub fn check_optional_version(&self, version: Option<u64>) -> Result<(), Problem> {
        version.map_or_else(|| self.check_missing_item(), |version| self.check_version(version))
    }
}
