//! Tests of the web page `/docs`, which documents the API: other pages cannot show it in a frame, and its content security
//! policy allows the scripts and styles that it loads.

use regex::Regex;
use reqwest::StatusCode;

use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn documentation_page_has_a_policy_that_allows_only_its_own_files() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&folder.path().join("data"), &[]);
    let get = async |path: &str| {
        let response = reqwest::get(format!("{}{path}", server.api_url)).await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let headers = ["content-security-policy", "x-content-type-options", "content-type"].map(header);
        (response.status(), headers, response.text().await.unwrap())
    };
    let (status, [policy, options, _], page) = get("/docs/").await;
    let policy = policy.expect("a content security policy");
    assert_eq!((status, options.as_deref()), (StatusCode::OK, Some("nosniff")));
    for directive in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.split("; ").any(|part| part == directive), "{directive}: {policy}");
    }

    // The policy allows no script in the page, and no file of another host.
    let scripts: Vec<_> = Regex::new("<script([^>]*)>([^<]*)").unwrap().captures_iter(&page).collect();
    assert!(scripts.len() > 2, "{page}");
    assert!(scripts.iter().all(|script| script[1].contains("src=") && script[2].trim().is_empty()), "{page}");
    let loaded = Regex::new(r#"(?:src|href)="\./([^"]*)"|(?:src|href)="([^"./][^"]*)""#).unwrap();
    let files: Vec<String> =
        loaded.captures_iter(&page).map(|file| file.get(1).or(file.get(2)).unwrap().as_str().to_owned()).collect();
    assert_eq!(
        page.matches("src=").count() + page.matches("href=").count(),
        files.len(),
        "relative paths only: {page}"
    );
    for file in files {
        let (status, [policy, options, content_type], _) = get(&format!("/docs/{file}")).await;
        assert_eq!((status, options.as_deref(), policy.is_some()), (StatusCode::OK, Some("nosniff"), true), "{file}");
        // With `nosniff`, a browser runs only a script, and uses only a style sheet, of the right type.
        let content_type = content_type.unwrap();
        let expected = if file.ends_with(".js") {
            "text/javascript"
        } else if file.ends_with(".css") {
            "text/css"
        } else {
            "image/png"
        };
        assert!(content_type.starts_with(expected), "{file}: {content_type}");
    }
    assert_eq!(get("/openapi.json").await.0, StatusCode::OK, "`connect-src 'self'` allows the description of the API");
}
