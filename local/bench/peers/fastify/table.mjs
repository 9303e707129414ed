// The requests to DynamoDB, and the keys of the items.
import { createHash } from 'node:crypto';
import http from 'node:http';
import {
  DynamoDBClient, GetItemCommand, QueryCommand, TransactionCanceledException, TransactWriteItemsCommand, UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { NodeHttpHandler } from '@smithy/node-http-handler';

export const TableName = 'dueday';
const httpAgent = new http.Agent({ keepAlive: true, maxSockets: 50 });
const client = new DynamoDBClient({
  endpoint: process.env.ENGINE, requestHandler: new NodeHttpHandler({ httpAgent, connectionTimeout: 2000, requestTimeout: 3000 }),
});

export const sha256 = (text) => createHash('sha256').update(text).digest('hex');
export const S = (text) => ({ S: text });
export const N = (number) => ({ N: String(number) });
export const partition = (account) => S(`ACC#${account}`);
export const accountKey = (account) => ({ PK: partition(account), SK: partition(account) });
const single = (text) => ({ PK: S(text), SK: S(text) });

export const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
// The code that stands for a subscription in the numbers of its receipts.
export function subscriptionCode(account, id) {
  const digest = createHash('sha256').update(`${account}\n${id}`).digest();
  return Array.from(digest.subarray(0, 12), (byte) => ALPHABET[byte % 32]).join('');
}

export const shardOf = (account, shards) =>
  Number(createHash('sha256').update(account).digest().readBigUInt64BE() % BigInt(shards));

export async function getItem(key) {
  return (await client.send(new GetItemCommand({ TableName, Key: key, ConsistentRead: true }))).Item;
}

export const getAccount = (account) => getItem(accountKey(account));
export const getSettings = () => getItem(single('CTL#settings'));
export const getRecord = (keyHash) => getItem(single(`IDEM#${keyHash}`));

// Returns the items of a partition whose sort keys begin with a prefix, at most `limit` of them.
export async function list(account, prefix, { limit, after, now, ascending = true } = {}) {
  const items = [];
  let ExclusiveStartKey = after && { PK: partition(account), SK: S(after) };
  do {
    const page = await client.send(new QueryCommand({
      TableName, ConsistentRead: true, ScanIndexForward: ascending, Limit: limit, ExclusiveStartKey,
      KeyConditionExpression: '#PK = :partition AND begins_with(#SK, :prefix)',
      ...(now && { FilterExpression: '#TTL > :now' }),
      ExpressionAttributeNames: { '#PK': 'PK', '#SK': 'SK', ...(now && { '#TTL': 'TTL' }) },
      ExpressionAttributeValues: { ':partition': partition(account), ':prefix': S(prefix), ...(now && { ':now': N(Math.floor(now / 1000)) }) },
    }));
    items.push(...page.Items);
    ExclusiveStartKey = page.LastEvaluatedKey;
  } while (ExclusiveStartKey && (limit === undefined || items.length < limit));
  return limit === undefined ? items : items.slice(0, limit);
}

// Returns a page of a list, and the cursor of the next page.
export async function listPage(account, prefix, { limit, after, ...more }) {
  const items = await list(account, prefix, { limit: limit + 1, after, ...more });
  if (items.length <= limit) return { items, next: null };
  items.pop();
  return { items, next: Buffer.from(items.at(-1).SK.S).toString('base64url') };
}

export async function getSubscription(account, id) {
  return (await list(account, `SUB#${id}#`)).at(-1);
}

export const listDisputes = (account) => list(account, 'DSP#');

// Sends a transaction. Returns null if it was written, otherwise for each write whether its condition failed, with the stored item.
export async function transact(TransactItems) {
  try {
    await client.send(new TransactWriteItemsCommand({ TransactItems }));
    return null;
  } catch (error) {
    const reasons = error instanceof TransactionCanceledException ? error.CancellationReasons : [];
    if (!reasons.some((reason) => reason.Code === 'ConditionalCheckFailed')) throw error;
    return reasons.map((reason) => (reason.Code === 'ConditionalCheckFailed' ? reason.Item ?? {} : null));
  }
}

// Updates an item. Returns the updated attributes, or in `stored` the item for which the condition failed.
export async function update(input) {
  try {
    return { updated: (await client.send(new UpdateItemCommand({ TableName, ReturnValuesOnConditionCheckFailure: 'ALL_OLD', ...input }))).Attributes };
  } catch (error) {
    if (error.name !== 'ConditionalCheckFailedException') throw error;
    return { stored: error.Item };
  }
}

export const put = (Item, condition, values) => ({
  Put: {
    TableName, Item,
    ...(condition && { ConditionExpression: condition, ReturnValuesOnConditionCheckFailure: 'ALL_OLD' }),
    ...(values && { ExpressionAttributeNames: { '#PK': 'PK', '#TTL': 'TTL' }, ExpressionAttributeValues: values }),
  },
});

// Writes the attributes in which two versions of an item differ, on condition that the stored version is the earlier one.
export function versionedUpdate(before, after) {
  const names = {}, values = { ':seen': before.Version }, set = [], remove = [];
  for (const [name, value] of Object.entries(after)) {
    if (JSON.stringify(value) === JSON.stringify(before[name])) continue;
    names[`#${name}`] = name;
    values[`:${name}`] = value;
    set.push(`#${name} = :${name}`);
  }
  for (const name of Object.keys(before)) {
    if (name in after) continue;
    names[`#${name}`] = name;
    remove.push(`#${name}`);
  }
  return {
    TableName, Key: { PK: before.PK, SK: before.SK }, ConditionExpression: '#Version = :seen',
    UpdateExpression: [set.length && `SET ${set.join(', ')}`, remove.length && `REMOVE ${remove.join(', ')}`].filter(Boolean).join(' '),
    ExpressionAttributeNames: { ...names, '#Version': 'Version' }, ExpressionAttributeValues: values, ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}
