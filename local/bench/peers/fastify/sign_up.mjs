// The first payment at sign-up: claim, charge, settle.
import http from 'node:http';
import { ulid } from 'ulid';
import { N, S, getItem, getSettings, getSubscription, put, sha256, transact, update, versionedUpdate } from './table.mjs';
import { addDays, dueIn, nextPeriod, receiptView, view, withVersion } from './subscriptions.mjs';

const RECEIPT_SECONDS = 190 * 86_400;
const LEASE = 20 * 60_000;
const agent = new http.Agent({ keepAlive: true, maxSockets: 50 });

const CLAIM = `SET AttemptBy = :token, AttemptLease = :lease, AttemptTable = :table, AttemptSeq = AttemptSeq + :one, AttemptNo = AttemptSeq + :one,
  AttemptDue = DueDate, AttemptAmount = PaymentAmount, AttemptCurrency = Currency, AttemptPayment = PaymentDetails, AttemptAt = :now, Version = Version + :one`;
const IS_PAYABLE = `NextPaymentDate = :seen AND DueDate <= :seen AND #Status IN (:active, :past_due) AND attribute_not_exists(AttemptNo)
  AND attribute_not_exists(AttemptBy) AND (attribute_not_exists(ChargeableFrom) OR ChargeableFrom <= DueDate) AND attribute_not_exists(DisputedDate)
  AND attribute_not_exists(OpenFindings) AND (attribute_not_exists(CancelPeriod) OR CancelPeriod > DueDate)`;

function request(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body && { 'content-type': 'application/json' };
    const sent = http.request(process.env.GATEWAY + path, { method, agent, headers, timeout: 10_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part)).on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`the gateway responded with ${response.statusCode}`));
      });
    });
    sent.on('timeout', () => sent.destroy(new Error('the gateway did not respond'))).on('error', reject).end(body && JSON.stringify(body));
  });
}

let account;
// Returns whether the payments of the table are made at the account of the gateway. The first charge stores the account.
async function isOwnGateway(settings) {
  account ??= request('GET', '/v1/account');
  const { Kind, Account, Live } = await account.catch((error) => { account = undefined; throw error; });
  const gateway = { M: { Kind: S(Kind), Account: S(Account), Live: { BOOL: Live } } };
  const stored = settings.Gateway ?? (await update({
    Key: { PK: settings.PK, SK: settings.SK }, UpdateExpression: 'SET Gateway = :gateway', ConditionExpression: 'attribute_not_exists(Gateway)',
    ExpressionAttributeValues: { ':gateway': gateway },
  })).stored?.Gateway ?? gateway;
  return stored.M.Kind.S === Kind && stored.M.Account.S === Account && stored.M.Live.BOOL === Live;
}

async function claim(item, table, now) {
  const token = ulid();
  const { updated, stored } = await update({
    Key: { PK: item.PK, SK: item.SK }, UpdateExpression: CLAIM, ConditionExpression: IS_PAYABLE, ReturnValues: 'ALL_NEW',
    ExpressionAttributeNames: { '#Status': 'Status' },
    ExpressionAttributeValues: {
      ':token': S(token), ':lease': S(new Date(now.getTime() + LEASE).toISOString()), ':table': table, ':one': N(1), ':now': S(now.toISOString()),
      ':seen': item.NextPaymentDate, ':active': S('active'), ':past_due': S('past_due'),
    },
  });
  return updated ?? (stored?.AttemptBy?.S === token ? stored : undefined);
}

async function charge(claimed) {
  const account = claimed.PK.S.slice(4);
  const [, subscription, , sku] = claimed.SK.S.split('#');
  const table = claimed.AttemptTable.S, due_on = claimed.AttemptDue.S, attempt_no = Number(claimed.AttemptNo.N);
  const amount = Number(claimed.AttemptAmount.N), currency = claimed.AttemptCurrency.S;
  const { succeeded: payment } = await request('POST', '/v1/payments', {
    idempotency_key: sha256([table, account, subscription, sku, due_on, attempt_no].join('\n')), table, account, subscription, sku, due_on, attempt_no,
    amount, currency, customer: claimed.AttemptPayment.M.customer.S, payment_method: claimed.AttemptPayment.M.payment_method.S,
  });
  const isOwn = payment && payment.account === account && payment.subscription === subscription && payment.due_on.slice(0, 7) === due_on.slice(0, 7);
  if (!isOwn || payment.amount !== amount || payment.currency !== currency) throw new Error(`the gateway returned another payment: ${payment?.id}`);
  return payment;
}

// Writes the receipt and the next due date in one transaction. Returns whether this call has settled the attempt.
async function settle(claimed, payment, today) {
  const now = new Date();
  const [, subscription, , sku] = claimed.SK.S.split('#');
  const due = claimed.AttemptDue.S, month = nextPeriod(due.slice(0, 7));
  const next = dueIn(month, Number(claimed.PaymentDay.N));
  const settled = withVersion(claimed, {
    ...claimed, DueDate: S(next), NextPaymentDate: S(next > today ? next : addDays(today, 1)), LastPaymentDate: S(now.toISOString()),
    ChargeableFrom: S(month), ...(next > today && { NextReminderDate: S(addDays(next, -7)) }),
  });
  for (const name of ['Table', 'No', 'Due', 'Amount', 'Currency', 'Payment', 'At', 'Lease', 'By']) delete settled[`Attempt${name}`];
  const receipt = {
    PK: claimed.PK, SK: S(`REC#${due}#SKU#${sku}#SUB#${subscription}`), SKU: S(sku), ProductName: claimed.ProductName, DueDate: S(due),
    ProcessedDate: S(now.toISOString()), ProcessedAmount: claimed.AttemptAmount, Currency: claimed.AttemptCurrency,
    GatewayPaymentId: S(payment.id), GatewayCustomerId: claimed.AttemptPayment.M.customer, TTL: N(Math.floor(now / 1000) + RECEIPT_SECONDS),
    ...(claimed.Email && { Email: claimed.Email }), ...(payment.card && { Card: { M: { Brand: S(payment.card.brand), Last4: S(payment.card.last4) } } }),
  };
  return (await transact([{ Update: versionedUpdate(claimed, settled) }, put(receipt, 'attribute_not_exists(PK)')])) === null;
}

const addToTotal = (claimed, today) => {
  const key = { PK: S(`RUN#payments#${today}`), SK: S(`CHARGED#${claimed.Shard.N}`) };
  const sum = `Sum${claimed.AttemptCurrency.S}`;
  return update({
    Key: key, UpdateExpression: `SET #TTL = :ttl ADD Charges :one, ${sum} :amount`, ConditionExpression: 'attribute_not_exists(Version)',
    ExpressionAttributeNames: { '#TTL': 'TTL' },
    ExpressionAttributeValues: { ':ttl': N(Date.parse(today) / 1000 + RECEIPT_SECONDS), ':one': N(1), ':amount': claimed.AttemptAmount },
  });
};

async function claimAndCharge(stored, today) {
  if (!(stored.NextPaymentDate?.S <= today)) return;
  const settings = await getSettings();
  if (!settings?.Charging.BOOL || !(await isOwnGateway(settings))) return;
  const claimed = await claim(stored, settings.TableId, new Date());
  if (!claimed) return;
  try {
    if (await settle(claimed, await charge(claimed), today)) await addToTotal(claimed, today);
  } catch (error) {
    // The outcome is unknown: the attempt stays open, and the next run looks it up.
    console.error(error);
  }
}

// Charges the first payment if it was not attempted yet. Returns the subscription with the state of the payment.
export async function firstPayment(stored, today) {
  const account = stored.PK.S.slice(4), [, id, , sku] = stored.SK.S.split('#');
  if (stored.AttemptSeq.N === '0') {
    await claimAndCharge(stored, today);
    stored = await getSubscription(account, id);
  }
  const receipt = stored.LastPaymentDate && await getItem({ PK: stored.PK, SK: S(`REC#${stored.FirstDueDate.S}#SKU#${sku}#SUB#${id}`) });
  const payment = receipt ? 'paid' : stored.AttemptSeq.N === '0' ? 'not_attempted' : 'unknown';
  return { stored, body: { ...view(stored), payment, decline_code: null, receipt: receipt ? receiptView(receipt) : null } };
}
