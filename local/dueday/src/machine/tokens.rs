//! Checks the tokens of the requests to the local API, if the server runs with `--auth`. The key of the local token
//! issuer is in a file of the data folder that only the owner of the file can read.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use clock::Clock;
use emulator::TokenIssuer;
use rest::{CallerRights, Problem, TokenRules, set_caller};

use super::secret_file::{read_secret_file, write_secret_file};
use crate::Failure;

/// The route with the public key of the local token issuer.
const KEY_SET_PATH: &str = "/.well-known/jwks.json";

/// Returns the path of the file with the private key of the token issuer of the data folder `folder`.
pub fn path_of_token_key(folder: &Path) -> PathBuf {
    folder.join("token-key.pem")
}

/// Reads the token issuer of the data folder `folder`.
///
/// # Errors
/// If the server was never started with `--auth`, or the file cannot be read or contains no valid key.
pub fn read_token_issuer(folder: &Path) -> Result<TokenIssuer, Failure> {
    let path = path_of_token_key(folder);
    let text = read_secret_file(&path).map_err(|failure| match failure {
        Failure::Data { source, .. } if source.kind() == io::ErrorKind::NotFound => Failure::Refused(format!(
            "there is no key for tokens in the data folder {}: start `dueday --auth` once, which creates it",
            folder.display()
        )),
        failure => failure,
    })?;
    TokenIssuer::new(&text).map_err(|error| Failure::File { path, reason: error.to_string() })
}

/// Reads the token issuer of the data folder `folder`, which this process has locked. Creates its key if it does not
/// exist.
///
/// # Errors
/// If the file cannot be created or read, or contains no valid key.
pub fn read_or_create_token_issuer(folder: &Path) -> Result<TokenIssuer, Failure> {
    let path = path_of_token_key(folder);
    if !path.exists() {
        write_secret_file(&path, &TokenIssuer::generate_key()).map_err(|source| Failure::Data { path, source })?;
    }
    read_token_issuer(folder)
}

/// The token issuer and the rules that determine the caller of each request.
#[derive(Clone)]
pub struct Authentication {
    pub issuer: Arc<TokenIssuer>,
    pub rules: TokenRules,
    pub clock: Arc<dyn Clock>,
}

impl Authentication {
    /// Adds the check of each request's token to `routes`, and the route with the public key of the issuer.
    pub fn protect(self, routes: Router) -> Router {
        let key_set = self.issuer.key_set();
        routes
            .layer(from_fn_with_state(self, set_caller_from_token))
            .route(KEY_SET_PATH, get(async move || Json(key_set)))
    }

    /// Returns the rights of the caller that the token in `request` identifies.
    fn rights_of_caller(&self, request: &Request) -> Result<CallerRights, Problem> {
        let header = request.headers().get(AUTHORIZATION).ok_or_else(Problem::unauthorized)?;
        let token = header.to_str().ok().and_then(|text| text.split_once(' '));
        let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
        let (_, token) =
            token.ok_or_else(|| Problem::invalid_token("the header Authorization must be: Bearer TOKEN"))?;
        let claims = self.issuer.verify(token.trim(), self.clock.now());
        let claims = claims.map_err(|error| Problem::invalid_token(error.to_string()))?;
        self.rules.rights_of_claims(&claims)
    }
}

/// Determines the caller from the token in `request`, and handles the request with the rights of this caller.
async fn set_caller_from_token(
    State(authentication): State<Authentication>,
    mut request: Request,
    next: Next,
) -> Response {
    let rights = authentication.rights_of_caller(&request);
    set_caller(&mut request, rights);
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn token_key_is_created_once_and_can_be_read_only_by_the_owner_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = read_token_issuer(folder.path()).unwrap_err().to_string();
        assert!(missing.contains("start `dueday --auth` once"), "{missing}");
        let created = read_or_create_token_issuer(folder.path()).unwrap();
        let read = read_or_create_token_issuer(folder.path()).unwrap();
        assert_eq!(created.key_set(), read.key_set());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(path_of_token_key(folder.path())).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn token_key_of_another_user_is_refused() {
        use std::os::unix::fs::lchown;
        let folder = tempfile::tempdir().unwrap();
        read_or_create_token_issuer(folder.path()).unwrap();
        let given_away = lchown(path_of_token_key(folder.path()), Some(4_242), None);
        match read_token_issuer(folder.path()) {
            Err(Failure::ForeignOwner { path, owner: 4_242, .. }) => assert_eq!(path, path_of_token_key(folder.path())),
            // Only root can give a file away, so the file still belongs to the user who runs this test.
            Ok(_) => assert!(given_away.is_err(), "the key of another user was read"),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn error_of_an_invalid_token_key_contains_the_file_name_and_no_key() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(path_of_token_key(folder.path()), "0123abc").unwrap();
        let invalid = read_or_create_token_issuer(folder.path()).unwrap_err().to_string();
        assert!(invalid.contains("token-key.pem") && invalid.contains("private key for ES256"), "{invalid}");
        assert!(!invalid.contains("0123abc"), "{invalid}");
    }
}
