// The fields of the requests: their JSON schemas, and the formats that a JSON schema cannot express.
import { readFileSync } from 'node:fs';

const currencies = JSON.parse(readFileSync(new URL('currencies.json', import.meta.url)));

function passesLuhn(digits) {
  let sum = 0;
  for (let place = 0; place < digits.length; place += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - place) - 48;
    const value = place % 2 === 1 ? digit * 2 : digit;
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}

// Returns whether the text contains 13 to 19 digits with a correct check digit, possibly in groups.
function hasCardNumber(text) {
  for (const [run] of text.matchAll(/\d+(?:[ -]\d+)*/g)) {
    if (run.length < 13) continue;
    const groups = run.split(/[ -]/);
    for (let first = 0; first < groups.length; first += 1) {
      let digits = '';
      for (let last = first; last < groups.length && digits.length <= 19; last += 1) {
        digits += groups[last];
        if (digits.length >= 13 && digits.length <= 19 && passesLuhn(digits)) return true;
      }
    }
  }
  return false;
}

function isLabel(text) {
  return text.trim() === text && !/[\p{Cc}\u2028\u2029]|\p{Bidi_Control}/u.test(text)
    && /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text) && !text.includes('=?') && !hasCardNumber(text);
}

function isDate(text) {
  const date = new Date(`${text}T00:00:00Z`);
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

// The options of the schema validator Ajv.
export const ajv = {
  customOptions: {
    allErrors: false, coerceTypes: false, removeAdditional: false, useDefaults: false, allowUnionTypes: true,
    formats: { label: isLabel, 'civil-date': isDate, address: (text) => text.includes('.', text.indexOf('@')) && !hasCardNumber(text) },
  },
};

const id = { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' };
const token = { type: 'string', pattern: '^[A-Za-z0-9._-]{1,255}$' };
const label = { type: 'string', minLength: 1, maxLength: 200, format: 'label' };
const email = { type: ['string', 'null'], maxLength: 254, allOf: [{ format: 'email' }, { format: 'address' }] };
const paymentDay = { type: 'integer', minimum: 1, maximum: 31 };
const amount = { type: 'integer', minimum: 1, maximum: 999_999_999_999 };
const paymentMethod = {
  type: 'object', additionalProperties: false, required: ['customer', 'payment_method'],
  properties: { customer: token, payment_method: token },
};

const subscription = { type: 'string', pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' };
export const path = { type: 'object', properties: { account: id, subscription } };

export const noQuery = { type: 'object', additionalProperties: false };

export const listQuery = {
  type: 'object', additionalProperties: false,
  properties: {
    cursor: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,1400}$' },
    limit: { type: 'string', pattern: '^([1-9][0-9]?|100)$' },
  },
};

export const newSubscription = {
  type: 'object', additionalProperties: false,
  required: ['sku', 'product_name', 'payment_day', 'amount', 'currency', 'payment_method'],
  properties: {
    sku: id, product_name: label, payment_day: paymentDay, amount, currency: { enum: currencies }, payment_method: paymentMethod, email,
    first_payment_date: { type: ['string', 'null'], format: 'civil-date' }, charge_now: { type: 'boolean' },
  },
};

export const change = {
  type: 'object', additionalProperties: false,
  properties: { amount, payment_day: paymentDay, payment_method: paymentMethod, product_name: label, email },
};
