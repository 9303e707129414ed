//! HTML web pages, for routes that are opened in a browser.

use axum::http::{HeaderMap, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use minijinja::{Environment, Value};

/// The content security policy of a web page without a logo: it allows inline styles, forbids the page to load anything
/// and to change the base of its links, and forbids other pages to show it in a frame.
const POLICY_WITHOUT_LOGO: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/// Returns whether the header `Accept` prefers HTML to JSON, as browsers do. A program that sends `*/*` gets JSON.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let media_type = |text: &str| text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let first = accepted.flat_map(|text| text.split(',')).map(media_type).find(|media_type| {
        matches!(media_type.as_str(), "text/html" | "application/xhtml+xml" | "application/json" | "application/*")
    });
    first.is_some_and(|media_type| media_type.contains("html"))
}

/// Returns the text of `template` with `values` in place of its variables. `name` is the name of the template: if it
/// ends with `.html`, the values are escaped for HTML.
pub fn render_template(name: &str, template: &str, values: Value) -> String {
    // The tests render each web page, so every variable of its template has a value.
    Environment::new().render_named_str(name, template, values).expect("every variable of the template has a value")
}

/// Creates the response with the HTML `page` and a content security policy that forbids the page to load anything.
pub fn html_response(page: String) -> Response {
    html_response_with_logo(page, None)
}

/// Creates the response with the HTML `page` and a content security policy that lets the page load only images from the
/// host of the URL `logo`.
pub fn html_response_with_logo(page: String, logo: Option<&str>) -> Response {
    // The policy contains only the scheme and the host of the logo's URL, because its path may contain characters that
    // have a meaning in a policy, such as `;`.
    let host = logo.and_then(|logo| {
        let logo: Uri = logo.parse().ok()?;
        Some(format!("{}://{}", logo.scheme()?, logo.authority()?))
    });
    let policy = host.map_or(POLICY_WITHOUT_LOGO.to_owned(), |host| format!("{POLICY_WITHOUT_LOGO}; img-src {host}"));
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::VARY, "accept".to_owned()),
    ];
    (headers, Html(page)).into_response()
}
