// The entries of the action log: who changed a subscription, and its fields before and after the change.
import { createHash } from 'node:crypto';
import { encodeTime } from 'ulid';
import { ALPHABET, N, S, put } from './table.mjs';
import { cancelDate } from './subscriptions.mjs';

const RETENTION_SECONDS = 730 * 86_400;
const EXPONENTS = { BHD: 3, IQD: 3, JOD: 3, KWD: 3, LYD: 3, OMR: 3, TND: 3 };
for (const code of ['BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'VND', 'VUV', 'XAF', 'XOF', 'XPF']) EXPONENTS[code] = 0;

function money(minor, currency) {
  const places = EXPONENTS[currency] ?? 2, digits = minor.padStart(places + 1, '0');
  return `${places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits} ${currency}`;
}

// Returns the fields whose values are logged; a field without a value is undefined.
function loggedFields(item) {
  const waiting = (item.WaitingTerms?.L ?? []).map(({ M }) => `from ${M.From.S}: ${money(M.PaymentAmount.N, item.Currency.S)} on day ${M.PaymentDay.N}`);
  return {
    status: item.Status.S, sku: item.SKU.S, price: money(item.PaymentAmount.N, item.Currency.S), payment_day: item.PaymentDay.N,
    waiting_terms: waiting.length ? waiting.join('; ') : undefined, due_on: item.DueDate.S, next_payment_on: item.NextPaymentDate?.S,
    cancels_on: cancelDate(item) ?? undefined, disputed_at: item.DisputedDate?.S,
  };
}

// Returns the fields whose values are personal data or tokens. The log only contains that they were changed.
function hiddenFields(item) {
  const { customer, payment_method } = item.PaymentDetails.M;
  return { payment_method: `${customer.S} ${payment_method.S}`, product_name: item.ProductName.S, email: item.Email?.S };
}

// Returns the fields of `fields` whose values are different in `others`.
const differing = (fields, others) =>
  Object.entries(fields).filter(([name, value]) => value !== undefined && value !== others[name]).map(([name, value]) => [name, S(value)]);

function actionId(action, subscription, version, now) {
  const digest = createHash('sha256').update(`${action}\n${subscription}\n${version}`).digest('hex');
  let bits = BigInt(`0x${digest.slice(12, 32)}`), random = '';
  for (let i = 0; i < 16; i += 1, bits >>= 5n) random = ALPHABET[Number(bits & 31n)] + random;
  return encodeTime(now.getTime()) + random;
}

// Builds the write of the entry for the change from `before`, which is undefined for a new subscription, to `after`.
export function actionWrite(action, before, after, now) {
  const [, subscription] = after.SK.S.split('#');
  const oldFields = before ? loggedFields(before) : {}, newFields = loggedFields(after);
  const added = differing(newFields, oldFields), removed = differing(oldFields, newFields);
  if (before) {
    const oldHidden = hiddenFields(before);
    for (const [name, value] of Object.entries(hiddenFields(after))) if (value !== oldHidden[name]) added.push([name, S('changed')]);
  }
  return put({
    PK: after.PK, SK: S(`ACTION#${actionId(action, subscription, after.Version.N, now)}`), Action: S(action), ActorKind: S('anonymous'),
    Subscription: S(subscription), ...(removed.length && { Before: { M: Object.fromEntries(removed) } }),
    ...(added.length && { After: { M: Object.fromEntries(added) } }), ProcessedDate: S(now.toISOString()),
    TTL: N(Math.floor(now / 1000) + RETENTION_SECONDS),
  });
}
