//! Sets the caller of each request from the verified claims of its token.

use axum::extract::Request;

use crate::caller::{Caller, RefusedToken};
use crate::{CallerRights, Problem, TokenSubject};

/// Sets the caller of `request` and the subject of its token. `rights` are the rights that the verified claims of the
/// token grant. If `rights` is an error, the token grants no rights: the request gets
/// no caller, and routes that need a caller return this error. Removes a caller that was set before.
pub fn set_caller(request: &mut Request, rights: Result<CallerRights, Problem>) {
    let extensions = request.extensions_mut();
    extensions.remove::<Caller>();
    extensions.remove::<TokenSubject>();
    match rights {
        Ok(CallerRights { caller, subject }) => {
            extensions.insert(caller);
            extensions.insert(TokenSubject(subject));
        }
        Err(problem) => {
            extensions.insert(RefusedToken(problem));
        }
    }
}
