// Serves a Lambda function's binary by HTTPS, like API Gateway: converts each request to an event of payload format 2.0,
// and passes it to the function through the Lambda Runtime API.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import path from 'node:path';

const listen = async (handler, tls) => {
  const server = tls ? createTlsServer(tls, handler) : createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
};
const read = async (stream) => {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
};

/** Returns a key and a certificate for this machine, which no browser trusts. */
function createCertificate() {
  const folder = mkdtempSync(path.join(tmpdir(), 'certificate-'));
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => path.join(folder, name));
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1', '-keyout', key, '-out', cert],
    { stdio: 'ignore' });
  const certificate = { key: readFileSync(key), cert: readFileSync(cert) };
  rmSync(folder, { recursive: true });
  return certificate;
}

/** Starts `binary` with `variables`. `claims` are the verified claims of the caller's token for paths that need one. Returns
 * the URL of the front, and a function that stops both. */
export async function serveFunction(binary, variables, claims) {
  const waiting = [];
  const invocations = new Map();
  let wake = () => {};
  const runtime = await listen(async (request, response) => {
    const [, id] = request.url.match(/invocation\/([^/]+)\/(?:response|error)$/) ?? [];
    if (id) {
      invocations.get(id)(JSON.parse(await read(request)));
      response.writeHead(202).end();
      return;
    }
    while (waiting.length === 0) await new Promise((resolve) => { wake = resolve; });
    const { id: next, event } = waiting.shift();
    response.writeHead(200, {
      'Lambda-Runtime-Aws-Request-Id': next,
      'Lambda-Runtime-Deadline-Ms': String(Date.now() + 30_000),
      'Lambda-Runtime-Invoked-Function-Arn': 'arn:aws:lambda:eu-west-1:123456789012:function:api',
    });
    response.end(JSON.stringify(event));
  });
  const child = spawn(binary, {
    env: { ...variables, AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${runtime.address().port}`, AWS_LAMBDA_FUNCTION_NAME: 'api',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256', AWS_LAMBDA_FUNCTION_VERSION: '1', AWS_LAMBDA_LOG_STREAM_NAME: 'log',
      AWS_LAMBDA_LOG_GROUP_NAME: 'log', _HANDLER: 'bootstrap' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  let number = 0;
  const front = await listen(async (request, response) => {
    const url = new URL(request.url, 'http://front');
    const body = await read(request);
    const now = new Date();
    const event = {
      version: '2.0', routeKey: '$default', rawPath: url.pathname, rawQueryString: url.search.slice(1),
      cookies: [], headers: request.headers, isBase64Encoded: true, body: body.toString('base64'),
      requestContext: {
        accountId: '123456789012', apiId: 'api', domainName: request.headers.host, domainPrefix: 'api', stage: '$default',
        requestId: String(number), routeKey: '$default', time: now.toISOString(), timeEpoch: now.getTime(),
        http: { method: request.method, path: url.pathname, protocol: 'HTTP/1.1', sourceIp: '127.0.0.1', userAgent: 'front' },
        ...(claims && { authorizer: { jwt: { claims, scopes: null } } }),
      },
    };
    const id = `request-${number++}`;
    const result = await new Promise((resolve) => {
      invocations.set(id, resolve);
      waiting.push({ id, event });
      wake();
    });
    const bytes = Buffer.from(result.body ?? '', result.isBase64Encoded ? 'base64' : 'utf8');
    response.writeHead(result.statusCode ?? 500, { ...result.headers, ...result.multiValueHeaders });
    response.end(bytes);
  }, createCertificate());
  const stop = () => { child.kill(); front.closeAllConnections(); front.close(); runtime.closeAllConnections(); runtime.close(); };
  return { url: `https://127.0.0.1:${front.address().port}`, stop };
}
