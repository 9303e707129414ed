// The payment batch as a program with the AWS SDK for JavaScript. It follows the same protocol as Dueday, with several rows in parallel.
import { createHash, randomUUID } from 'node:crypto';
import http from 'node:http';
import { once } from 'node:events';
import { DynamoDBClient, GetItemCommand, paginateQuery, TransactWriteItemsCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { NodeHttpHandler } from '@smithy/node-http-handler';

const { ENGINE, GATEWAY, TODAY } = process.env;
const concurrency = Number(process.env.CONCURRENCY);
const shards = Number(process.env.SHARDS);
const TableName = 'dueday';

const agent = () => new http.Agent({ keepAlive: true, maxSockets: concurrency });
const client = new DynamoDBClient({ endpoint: ENGINE, requestHandler: new NodeHttpHandler({ httpAgent: agent(), connectionTimeout: 2000, requestTimeout: 3000 }) });
const gateway = agent();

const claim = `SET AttemptTable = :table, AttemptSeq = AttemptSeq + :one, AttemptNo = AttemptSeq + :one, AttemptDue = DueDate,
  AttemptAmount = PaymentAmount, AttemptCurrency = Currency, AttemptPayment = PaymentDetails, AttemptAt = :now,
  AttemptLease = :lease, AttemptBy = :token, Version = Version + :one`;
const isDue = `NextPaymentDate = :seen AND #Status IN (:active, :past_due) AND attribute_not_exists(AttemptNo) AND attribute_not_exists(DisputedDate)
  AND (attribute_not_exists(CancelPeriod) OR CancelPeriod > DueDate)`;
const settle = `SET DueDate = :due, NextPaymentDate = :due, NextReminderDate = :remind, LastPaymentDate = :now, Version = :version
  REMOVE AttemptTable, AttemptNo, AttemptDue, AttemptAmount, AttemptCurrency, AttemptPayment, AttemptAt, AttemptLease, AttemptBy`;

function charge(request) {
  const { promise, resolve, reject } = deferred();
  const sent = http.request(GATEWAY + '/v1/payments', { method: 'POST', agent: gateway, headers: { 'content-type': 'application/json' }, timeout: 30000 }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part) => (text += part)).on('end', () => resolve(JSON.parse(text))).on('error', reject);
  });
  sent.on('error', reject).end(JSON.stringify(request));
  return promise;
}

function deferred() {
  let resolve, reject;
  const promise = new Promise((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
}

function nextDueDate(due, paymentDay) {
  const [year, month] = due.split('-').map(Number);
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return new Date(Date.UTC(year, month, Math.min(paymentDay, last)));
}

const day = (date) => date.toISOString().slice(0, 10);
let tableId;

async function pay(row) {
  let now = new Date();
  const Key = { PK: row.PK, SK: row.SK };
  const { Attributes: claimed } = await client.send(new UpdateItemCommand({
    TableName, Key, UpdateExpression: claim, ConditionExpression: isDue, ExpressionAttributeNames: { '#Status': 'Status' },
    ExpressionAttributeValues: {
      ':table': { S: tableId }, ':one': { N: '1' }, ':now': { S: now.toISOString() }, ':lease': { S: new Date(now.getTime() + 1200000).toISOString() },
      ':token': { S: randomUUID().replaceAll('-', '').slice(0, 26).toUpperCase() }, ':seen': row.NextPaymentDate,
      ':active': { S: 'active' }, ':past_due': { S: 'past_due' },
    },
    ReturnValues: 'ALL_NEW', ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  }));
  const account = row.PK.S.slice(4);
  const [, subscription, , sku] = row.SK.S.split('#');
  const due = claimed.AttemptDue.S;
  const number = Number(claimed.AttemptNo.N);
  const amount = Number(claimed.AttemptAmount.N);
  const { succeeded: payment } = await charge({
    idempotency_key: createHash('sha256').update([tableId, account, subscription, sku, due, number].join('\n')).digest('hex'),
    table: tableId, account, subscription, sku, due_on: due, attempt_no: number, amount, currency: claimed.AttemptCurrency.S,
    customer: claimed.AttemptPayment.M.customer.S, payment_method: claimed.AttemptPayment.M.payment_method.S,
  });
  if (payment.account !== account || payment.subscription !== subscription || payment.amount !== amount) throw new Error('the gateway returned another payment');
  now = new Date();
  const following = nextDueDate(due, Number(claimed.PaymentDay.N));
  await client.send(new TransactWriteItemsCommand({
    TransactItems: [
      { Update: {
        TableName, Key, UpdateExpression: settle, ConditionExpression: 'Version = :seen', ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        ExpressionAttributeValues: {
          ':due': { S: day(following) }, ':remind': { S: day(new Date(following.getTime() - 7 * 86400000)) }, ':now': { S: now.toISOString() },
          ':version': { N: String(Number(claimed.Version.N) + 1) }, ':seen': claimed.Version,
        },
      } },
      { Put: {
        TableName, ConditionExpression: 'attribute_not_exists(PK)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        Item: {
          PK: row.PK, SK: { S: `REC#${due}#SKU#${sku}#SUB#${subscription}` }, SKU: { S: sku }, ProductName: claimed.ProductName, DueDate: { S: due },
          ProcessedDate: { S: now.toISOString() }, ProcessedAmount: claimed.AttemptAmount, Currency: claimed.AttemptCurrency,
          GatewayPaymentId: { S: payment.id }, TTL: { N: String(Math.floor(now.getTime() / 1000) + 190 * 86400) },
        },
      } },
    ],
  }));
}

async function* dueRows(today) {
  for (let shard = 0; shard < shards; shard += 1) {
    const pages = paginateQuery({ client, pageSize: 200 }, {
      TableName, IndexName: 'GSI-2', KeyConditionExpression: '#Shard = :shard AND NextPaymentDate <= :today', ExpressionAttributeNames: { '#Shard': 'Shard' },
      ExpressionAttributeValues: { ':shard': { N: String(shard) }, ':today': { S: today } },
    });
    for await (const page of pages) yield* page.Items;
  }
}

const settings = { PK: { S: 'CTL#settings' }, SK: { S: 'CTL#settings' } };
tableId = (await client.send(new GetItemCommand({ TableName, Key: settings }))).Item.TableId.S;
for await (const row of dueRows('2020-01-01')) throw new Error(`no row was due on this day, but the index returned ${row}`);
console.log('ready');
await once(process.stdin, 'data');
const rows = dueRows(TODAY);
const work = async () => {
  for (let next = await rows.next(); !next.done; next = await rows.next()) await pay(next.value);
};
await Promise.all(Array.from({ length: concurrency }, work));
console.log('done');
await once(process.stdin, 'data');
