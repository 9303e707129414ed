//! Pages for those who open an address in a browser.

use axum::http::{HeaderMap, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::{Environment, Value};

/// A page has its style in itself and loads nothing, but for a logo.
const NOTHING_ELSE: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Whether a page is asked for, as browsers do; a program that takes anything gets JSON.
pub fn is_asked(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let media = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let first = accepted.flat_map(|text| text.split(',')).map(media).find(|media| {
        matches!(media.as_str(), "text/html" | "application/xhtml+xml" | "application/json" | "application/*")
    });
    first.is_some_and(|media| media.contains("html"))
}

/// `template` with `values`, which its name makes HTML of: they are escaped.
pub fn rendered(name: &str, template: &str, values: Value) -> String {
    // Every name in a template is one of its values, as a test of each page shows.
    Environment::new().render_named_str(name, template, values).expect("the template's names are given")
}

/// The answer that is `page`, which loads nothing.
pub fn answer(page: String) -> Response {
    answer_with(page, None)
}

/// The answer that is `page`, which loads the image at `logo`.
pub fn answer_with(page: String, logo: Option<&str>) -> Response {
    // The whole address may hold what has a meaning in a policy; a host may not.
    let from = logo.and_then(|logo| {
        let logo: Uri = logo.parse().ok()?;
        Some(format!("{}://{}", logo.scheme()?, logo.authority()?))
    });
    let policy = from.map_or(NOTHING_ELSE.to_owned(), |from| format!("{NOTHING_ELSE}; img-src {from}"));
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::VARY, "accept".to_owned()),
    ];
    (headers, Html(page)).into_response()
}
