// The error responses (RFC 9457).
const titles = {
  'invalid-field': [400, 'A field is not valid'],
  'malformed-body': [400, 'The body cannot be read'],
  'not-found': [404, 'Not found'],
  conflict: [409, 'Conflict'],
  'in-progress': [409, 'Write conflict'],
  stale: [412, 'The version has changed'],
  'too-large': [413, 'The body is too large'],
  'not-json': [415, 'Not JSON'],
  'refused-field': [422, 'A field is refused'],
  'idempotency-key-reused': [422, 'The idempotency key was used for another request'],
  internal: [500, 'Internal error'],
  unavailable: [503, 'Temporarily unavailable'],
};

export class Problem extends Error {
  constructor(kind, detail, field) {
    super(detail);
    const [status, title] = titles[kind];
    this.status = status;
    this.body = { type: `urn:dueday:problem:${kind}`, title, status, detail, ...(field && { field }) };
  }
}

// Converts an error of the schema validator, of Fastify or of a handler.
export function problemOf(error) {
  if (error instanceof Problem) return error;
  if (error.validation) {
    const [{ instancePath, params, message }] = error.validation;
    const names = instancePath.split('/').slice(1);
    names.push(...[params.missingProperty ?? params.additionalProperty].filter(Boolean));
    return names.length ? new Problem('invalid-field', message, names.join('.')) : new Problem('malformed-body', `the body ${message}`);
  }
  switch (error.statusCode) {
    case 400: return new Problem('malformed-body', 'the body is not JSON');
    case 413: return new Problem('too-large', 'the body must be at most 65536 bytes');
    case 415: return new Problem('not-json', 'send the header Content-Type: application/json, even without a body');
    default:
      console.error(error);
      return new Problem('internal', 'the error is logged; sending the request again will not help');
  }
}
