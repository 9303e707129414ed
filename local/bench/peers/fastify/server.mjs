// The five requests of the benchmark as an API with Fastify and the AWS SDK for JavaScript.
import Fastify from 'fastify';
import { ulid } from 'ulid';
import { actionWrite } from './action_log.mjs';
import { ajv, change as changeFields, listQuery, newSubscription, noQuery, path } from './fields.mjs';
import { Problem, problemOf } from './problem.mjs';
import { firstPayment } from './sign_up.mjs';
import * as subscriptions from './subscriptions.mjs';
import {
  N, S, TableName, accountKey, getAccount, getRecord, getSettings, getSubscription, listDisputes, listPage, put, sha256, subscriptionCode, transact,
  versionedUpdate,
} from './table.mjs';

const RECORD_SECONDS = 48 * 3_600;
const MAX_CONFLICTS = 8;
const shards = Number((await getSettings()).Shards.N);

const app = Fastify({ ajv, bodyLimit: 64 * 1024, logger: false });
const parseJson = app.getDefaultJsonParser('error', 'error');
app.removeAllContentTypeParsers();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
  request.bodyHash = sha256(body);
  parseJson(request, body.toString(), done);
});
app.decorateRequest('bodyHash', '');
app.setErrorHandler((error, request, reply) => {
  const problem = problemOf(error);
  reply.code(problem.status).type('application/problem+json').send(JSON.stringify(problem.body));
});
app.setNotFoundHandler(() => { throw new Problem('not-found', 'there is nothing at this path'); });
app.addHook('onSend', async (request, reply, body) => { reply.header('cache-control', 'no-store'); return body; });

const send = (reply, status, json, version) => reply.code(status).type('application/json').header('etag', `"${version}"`).send(json);
const noAccount = () => new Problem('not-found', 'there is no such account');

// Returns the hash of the idempotency key, or undefined if the request has no key.
function keyHash(request) {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) throw new Problem('invalid-field', 'must be 1 to 255 printable ASCII characters', 'Idempotency-Key');
  return sha256(`operator\n${request.method}\n${request.url.split('?')[0]}\n${key}`);
}

async function replay(record, request, reply, today) {
  if (record.RequestHash.S !== request.bodyHash) throw new Problem('idempotency-key-reused', 'this Idempotency-Key was used for a request with another body; use a new key');
  reply.header('idempotent-replayed', 'true');
  if (!request.body.charge_now) return send(reply, 201, record.Answer.S, record.AnswerVersion.N);
  return sendFirstPayment(reply, await getSubscription(request.params.account, JSON.parse(record.Answer.S).id), today);
}

async function sendFirstPayment(reply, subscription, today) {
  const { stored, body } = await firstPayment(subscription, today);
  return send(reply, ['unknown', 'not_attempted'].includes(body.payment) ? 202 : 201, JSON.stringify(body), stored.Version.N);
}

const createSchema = { params: path, querystring: noQuery, body: newSubscription };
app.post('/accounts/:account/subscriptions', { schema: createSchema }, async (request, reply) => {
  const now = new Date(), today = subscriptions.day(now), hash = keyHash(request);
  const { params: { account }, body: fields } = request;
  const record = hash && await getRecord(hash);
  if (record && Number(record.TTL.N) > now / 1000) return replay(record, request, reply, today);
  if (fields.charge_now && fields.first_payment_date !== today) throw new Problem('refused-field', `charge_now requires a first_payment_date of today, ${today}`, 'charge_now');
  if (fields.charge_now && !hash) throw new Problem('refused-field', 'charge_now requires an Idempotency-Key', 'charge_now');
  const disputes = await listDisputes(account), id = ulid();
  const item = subscriptions.create(account, id, fields, { now, today, shards, disputes });
  const json = JSON.stringify(subscriptions.view(item)), seconds = Math.floor(now / 1000), absent = 'attribute_not_exists(PK)';
  const code = `CODE#${subscriptionCode(account, id)}`;
  const writes = [
    { ConditionCheck: { TableName, Key: accountKey(account), ConditionExpression: 'attribute_exists(PK)' } },
    put(item, absent),
    hash && put({
      PK: S(`IDEM#${hash}`), SK: S(`IDEM#${hash}`), RequestHash: S(request.bodyHash), Answer: S(json), AnswerVersion: N(1), TTL: N(seconds + RECORD_SECONDS),
    }, 'attribute_not_exists(#PK) OR #TTL <= :now', { ':now': N(seconds) }),
    put({ PK: S(code), SK: S(code), Account: S(account), Subscription: S(id) }),
    actionWrite('subscription.create', undefined, item, now),
  ].filter(Boolean);
  const failed = await transact(writes);
  if (failed && hash && failed[2]) return replay(failed[2], request, reply, today);
  if (failed && failed[1]) throw new Problem('conflict', 'there is already a subscription with this id');
  if (failed) throw noAccount();
  return fields.charge_now ? sendFirstPayment(reply, item, today) : send(reply, 201, json, 1);
});

function paging({ cursor, limit }, prefix) {
  const after = cursor && Buffer.from(cursor, 'base64url').toString();
  if (after !== undefined && !after.startsWith(prefix)) throw new Problem('refused-field', 'must be the next_cursor of the previous page', 'cursor');
  return { limit: Number(limit ?? 50), after };
}

async function sendList(reply, account, { items, next }, view) {
  if (!items.length && !(await getAccount(account))) throw noAccount();
  return reply.type('application/json').send(JSON.stringify({ data: items.map(view), unreadable: [], next_cursor: next }));
}

const listSchema = { params: path, querystring: listQuery };
app.get('/accounts/:account/subscriptions', { schema: listSchema }, async (request, reply) => {
  const { account } = request.params;
  return sendList(reply, account, await listPage(account, 'SUB#', paging(request.query, 'SUB#')), subscriptions.view);
});

app.get('/accounts/:account/receipts', { schema: listSchema }, async (request, reply) => {
  const { account } = request.params;
  const page = await listPage(account, 'REC#', { ...paging(request.query, 'REC#'), now: Date.now(), ascending: false });
  return sendList(reply, account, page, subscriptions.receiptView);
});

// Checks the version against the header If-Match.
function checkVersion(header, item) {
  if (header === undefined || header.trim() === '*') return;
  const tags = header.split(',').map((tag) => tag.trim()).filter(Boolean);
  if (!tags.every((tag) => /^(W\/)?"[^"]*"$/.test(tag))) throw new Problem('invalid-field', 'must be the ETag of an earlier response, with its quotes, or *', 'If-Match');
  if (!tags.includes(`"${item.Version.N}"`)) throw new Problem('stale', 'the stored item does not have the version in If-Match; get it again before you repeat the request');
}

const changeSchema = { params: path, querystring: noQuery, body: changeFields };
app.patch('/accounts/:account/subscriptions/:subscription', { schema: changeSchema }, async (request, reply) => {
  const now = new Date(), today = subscriptions.day(now);
  const { params: { account, subscription }, body: fields, headers } = request;
  const disputes = fields.payment_method ? await listDisputes(account) : [];
  let stored = await getSubscription(account, subscription);
  for (let conflicts = 0; stored; conflicts += 1) {
    checkVersion(headers['if-match'], stored);
    const changed = subscriptions.change(stored, fields, { now, today, disputes });
    const isSame = subscriptions.isSame(stored, changed);
    const written = isSame ? stored : subscriptions.withVersion(stored, changed);
    const failed = isSame ? null : await transact([{ Update: versionedUpdate(stored, written) }, actionWrite('subscription.change', stored, written, now)]);
    if (!failed) return send(reply, 200, JSON.stringify(subscriptions.view(written)), written.Version.N);
    if (conflicts === MAX_CONFLICTS) throw new Problem('in-progress', 'another request is changing the same data at this moment; send this request again');
    stored = failed[0].SK && failed[0];
  }
  throw new Problem('not-found', 'there is no such subscription');
});

console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
