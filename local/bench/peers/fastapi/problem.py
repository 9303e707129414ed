"""The error responses (RFC 9457)."""

TITLES = {
    "invalid-field": (400, "A field is not valid"),
    "malformed-body": (400, "The body cannot be read"),
    "not-found": (404, "Not found"),
    "conflict": (409, "Conflict"),
    "in-progress": (409, "Write conflict"),
    "stale": (412, "The version has changed"),
    "too-large": (413, "The body is too large"),
    "not-json": (415, "Not JSON"),
    "refused-field": (422, "A field is refused"),
    "idempotency-key-reused": (422, "The idempotency key was used for another request"),
    "internal": (500, "Internal error"),
}


class Problem(Exception):
    def __init__(self, kind, detail, field=None):
        super().__init__(detail)
        self.status, title = TITLES[kind]
        self.body = {"type": f"urn:dueday:problem:{kind}", "title": title, "status": self.status, "detail": detail}
        if field:
            self.body["field"] = field


def problem_of_validation(errors, skipped=0):
    """Converts the errors of pydantic. `skipped` is the number of leading names that are not those of a field."""
    first = errors[0]
    names = [str(name) for name in first["loc"][skipped:] if not str(name).startswith("function-")]
    if names:
        return Problem("invalid-field", first["msg"], ".".join(names))
    return Problem("malformed-body", f"the body is not valid: {first['msg']}")
