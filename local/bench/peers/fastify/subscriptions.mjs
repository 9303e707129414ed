// The rules of subscriptions: dates, changes, and the views that the API returns. Subscriptions are kept as DynamoDB items.
import { N, S, partition, shardOf, subscriptionCode } from './table.mjs';
import { Problem } from './problem.mjs';

const LEAD_DAYS = 7;
const DAY = 86_400_000;

export const day = (date) => date.toISOString().slice(0, 10);
export const addDays = (date, days) => day(new Date(Date.parse(date) + days * DAY));
const period = (date) => date.slice(0, 7);
const reminderOf = (due) => addDays(due, -LEAD_DAYS);

export function nextPeriod(month) {
  const [year, number] = month.split('-').map(Number);
  return number === 12 ? `${String(year + 1).padStart(4, '0')}-01` : `${month.slice(0, 4)}-${String(number + 1).padStart(2, '0')}`;
}

export function dueIn(month, paymentDay) {
  const [year, number] = month.split('-').map(Number);
  const last = new Date(Date.UTC(year, number, 0)).getUTCDate();
  return `${month}-${String(Math.min(paymentDay, last)).padStart(2, '0')}`;
}

export function firstDue(paymentDay, requested, today) {
  if (!requested) {
    const due = dueIn(period(today), paymentDay);
    return due > today ? due : dueIn(nextPeriod(period(today)), paymentDay);
  }
  const refuse = (detail) => { throw new Problem('refused-field', detail, 'first_payment_date'); };
  if (requested < today) refuse(`must be today, ${today}, or later`);
  if (requested > addDays(today, 3652)) refuse('must be at most ten years ahead');
  if (requested !== dueIn(period(requested), paymentDay)) refuse(`must be on the payment day, ${dueIn(period(requested), paymentDay)}`);
  return requested;
}

export const paymentDetails = ({ customer, payment_method }) => ({ M: { customer: S(customer), payment_method: S(payment_method) } });

// Sets the time since which an open or lost dispute stops the charges of the payment method, or removes it.
export function markDispute(item, disputes) {
  const stops = disputes.filter((dispute) => ['open', 'lost', 'returned'].includes(dispute.Status.S)
    && dispute.PaymentMethod.S === item.PaymentDetails.M.payment_method.S
    && !(dispute.CreatedDate.S <= item.ChargedThoughDisputedDate?.S));
  delete item.DisputedDate;
  if (stops.length) item.DisputedDate = S(stops.map((dispute) => dispute.CreatedDate.S).sort()[0]);
  return item;
}

export function create(account, id, fields, { now, today, shards, disputes }) {
  const due = firstDue(fields.payment_day, fields.first_payment_date, today);
  const item = {
    PK: partition(account), SK: S(`SUB#${id}#SKU#${fields.sku}`), SKU: S(fields.sku), ProductName: S(fields.product_name),
    PaymentDay: N(fields.payment_day), PaymentAmount: N(fields.amount), Currency: S(fields.currency),
    PaymentDetails: paymentDetails(fields.payment_method), Status: S('active'), FirstDueDate: S(due), DueDate: S(due),
    NextPaymentDate: S(due), NextReminderDate: S(reminderOf(due)), FailedAttempts: N(0), AttemptSeq: N(0), Shard: N(shardOf(account, shards)),
    CreatedDate: S(now.toISOString()), Version: N(1), ...(fields.email && { Email: S(fields.email) }),
  };
  return markDispute(item, disputes);
}

// The terms of a month: those of the latest waiting change that begins in or before this month.
function termsIn(item, month) {
  const waiting = (item.WaitingTerms?.L ?? []).map(({ M }) => M).findLast((terms) => terms.From.S <= month);
  return { PaymentDay: item.PaymentDay, PaymentAmount: item.PaymentAmount, ...waiting, From: S(month) };
}

const dueOf = (item, month) => (month === period(item.DueDate.S) ? item.DueDate.S : dueIn(month, Number(termsIn(item, month).PaymentDay.N)));
const isEnding = (item) => item.CancelPeriod?.S <= period(item.DueDate.S);

function planReminder(item, today) {
  delete item.NextReminderDate;
  if (item.Status.S === 'active' && !item.AttemptNo && item.DueDate.S >= today && !isEnding(item)) item.NextReminderDate = S(reminderOf(item.DueDate.S));
}

// Changes the terms from the first month that has neither fallen due nor been tried. Returns this month.
function changeTerms(item, changed, isChangeable) {
  const due = period(item.DueDate.S);
  let month = item.AttemptNo || item.FailedAttempts.N !== '0' ? nextPeriod(due) : due;
  while (!isChangeable(dueOf(item, month), month)) month = nextPeriod(month);
  const all = (item.WaitingTerms?.L ?? []).map(({ M }) => M);
  if (!all.some((terms) => terms.From.S === month)) all.push(termsIn(item, month));
  all.sort((a, b) => (a.From.S < b.From.S ? -1 : 1));
  let last = termsIn(item, due);
  const waiting = [];
  for (const before of all) {
    const terms = before.From.S >= month ? { ...before, ...changed } : before;
    if (terms.From.S === due) Object.assign(item, { PaymentDay: terms.PaymentDay, PaymentAmount: terms.PaymentAmount });
    else if (terms.PaymentDay.N !== last.PaymentDay.N || terms.PaymentAmount.N !== last.PaymentAmount.N) waiting.push({ M: terms });
    last = terms;
  }
  delete item.WaitingTerms;
  if (waiting.length) item.WaitingTerms = { L: waiting };
  return month;
}

// Returns the changed item of a subscription. Throws a problem if the change is not allowed.
export function change(stored, fields, { now, today, disputes }) {
  if (stored.Status.S === 'cancelled') throw new Problem('conflict', 'a cancelled subscription cannot be changed');
  const item = { ...stored };
  if (fields.product_name !== undefined) item.ProductName = S(fields.product_name);
  if (fields.email === null) delete item.Email;
  else if (fields.email !== undefined) item.Email = S(fields.email);
  if (fields.amount !== undefined) {
    changeTerms(item, { PaymentAmount: N(fields.amount) }, (due) => due > today);
    if (item.PaymentAmount.N !== stored.PaymentAmount.N) planReminder(item, today);
  }
  if (fields.payment_day !== undefined) {
    if (stored.Status.S === 'paused' && fields.payment_day !== Number(stored.PaymentDay.N)) throw new Problem('conflict', 'the payment day of a paused subscription cannot be changed');
    const month = changeTerms(item, { PaymentDay: N(fields.payment_day) }, (due, of) => due > today && dueIn(of, fields.payment_day) > today);
    const moved = dueIn(month, fields.payment_day);
    if (month === period(item.DueDate.S) && moved !== item.DueDate.S) {
      if (!item.LastPaymentDate && item.FirstDueDate.S === item.DueDate.S) item.FirstDueDate = S(moved);
      item.DueDate = S(moved);
      if (['active', 'past_due'].includes(item.Status.S)) {
        item.NextPaymentDate = S(moved > today ? moved : today);
        planReminder(item, today);
      }
    }
  }
  if (fields.payment_method) changePaymentMethod(item, stored, fields.payment_method, { now, today, disputes });
  return item;
}

function changePaymentMethod(item, stored, method, { now, today, disputes }) {
  const details = paymentDetails(method);
  if (JSON.stringify(details) === JSON.stringify(stored.PaymentDetails)) return;
  Object.assign(item, { PaymentDetails: details, PaymentDetailsDate: S(now.toISOString()) });
  delete item.Rejections;
  if (['past_due', 'unpaid'].includes(item.Status.S) && !item.AttemptNo) {
    Object.assign(item, { Status: S('past_due'), FailedAttempts: N(0), NextPaymentDate: S(today) });
  }
  markDispute(item, disputes);
}

export const withVersion = (before, item) => ({ ...item, Version: N(Number(before.Version.N) + 1) });
const isEqual = (left, right) => JSON.stringify(left) === JSON.stringify(right);
export const isSame = (before, item) => Object.keys(before).length === Object.keys(item).length
  && Object.entries(item).every(([name, value]) => isEqual(value, before[name]));

export function cancelDate(item) {
  if (!item.CancelPeriod || item.Status.S === 'cancelled') return null;
  return isEnding(item) ? item.DueDate.S : dueOf(item, item.CancelPeriod.S);
}

export function view(item) {
  const [, id, , sku] = item.SK.S.split('#');
  return {
    id, external_id: item.ExternalId?.S ?? null, account: item.PK.S.slice(4), sku, product_name: item.ProductName.S, email: item.Email?.S ?? null,
    status: item.Status.S, payment_day: Number(item.PaymentDay.N), amount: Number(item.PaymentAmount.N), currency: item.Currency.S,
    waiting_terms: (item.WaitingTerms?.L ?? []).map(({ M }) => ({ from: M.From.S, payment_day: Number(M.PaymentDay.N), amount: Number(M.PaymentAmount.N) })),
    payment_method: { customer: item.PaymentDetails.M.customer.S, payment_method: item.PaymentDetails.M.payment_method.S },
    disputed_at: item.DisputedDate?.S ?? null, due_date: item.DueDate.S, next_payment_date: item.NextPaymentDate?.S ?? null,
    next_reminder_date: item.NextReminderDate?.S ?? null, last_payment_at: item.LastPaymentDate?.S ?? null, last_reminder_at: item.LastReminderDate?.S ?? null,
    failed_attempts: Number(item.FailedAttempts.N), cancel_date: cancelDate(item),
    open_payment: item.AttemptNo ? { due_date: item.AttemptDue.S, amount: Number(item.AttemptAmount.N), currency: item.AttemptCurrency.S, since: item.AttemptAt.S } : null,
    created_at: item.CreatedDate.S, version: Number(item.Version.N),
  };
}

export function receiptView(item) {
  const account = item.PK.S.slice(4);
  const [, due, , sku, , subscription] = item.SK.S.split('#');
  const amount = Number(item.ProcessedAmount.N), refunded = Number(item.RefundedAmount?.N ?? 0), reversed = Number(item.ReversedAmount?.N ?? 0);
  const code = subscriptionCode(account, subscription);
  return {
    id: `${due}.${subscription}.${sku}`, number: `${due.slice(0, 4)}${due.slice(5, 7)}-${code.slice(0, 6)}-${code.slice(6)}`,
    account, subscription, sku, product_name: item.ProductName.S, due_date: due, amount, currency: item.Currency.S, refunded_amount: refunded,
    refunded_at: refunded > 0 ? item.RefundedDate?.S ?? null : null, reversed_amount: reversed, reversed_at: item.ReversedDate?.S ?? null,
    net_amount: Math.max(0, amount - refunded - reversed), gateway_payment_id: item.GatewayPaymentId.S,
    card: item.Card ? { brand: item.Card.M.Brand.S, last4: item.Card.M.Last4.S } : null, processed_at: item.ProcessedDate.S,
  };
}
