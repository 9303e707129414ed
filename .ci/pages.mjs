// Opens every page that a customer or an operator may see in Chromium, on one machine and through the Lambda handler, and the
// HTML parts of the mails: no page may report a problem on its console, or be wider than a phone.
//
//     .ci/with-server node .ci/pages.mjs FOLDER_OF_NODE_MODULES
//
// If PAGES_SCREENSHOTS is set to a folder, the script saves a screenshot of each page there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { serveFunction } from './lambda-front.mjs';

const { chromium } = createRequire(path.resolve(process.argv[2]) + '/')('playwright-core');
const root = path.resolve(import.meta.dirname, '..');
const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target');
const { DUEDAY_API: api, DUEDAY_DATA: data, DUEDAY_DYNAMODB: dynamodb } = process.env;
const gateway = JSON.parse(readFileSync(path.join(data, 'running.json'))).gateway;
const dueday = (...args) => execFileSync(path.join(target, 'debug/dueday'), ['--data', data, ...args], { encoding: 'utf8' });
const today = new Date().toISOString().slice(0, 10);

async function ask(method, url, body, headers = {}) {
  const response = await fetch(api + url, {
    method, headers: { 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** Signs up `account` with a first payment of today. */
async function signUp(account, locale, paymentMethod) {
  await ask('PUT', `/accounts/${account}`, { email: `${account}@example.com`, name: account, locale });
  await ask('POST', `/accounts/${account}/subscriptions`, {
    sku: 'gold', product_name: 'Gold plan', payment_day: new Date().getUTCDate(), first_payment_date: today, amount: 1299,
    currency: 'EUR', payment_method: { customer: `cus_${account}`, payment_method: paymentMethod },
  }, { 'idempotency-key': account });
}

/** Returns the URL of the card link in the newest mail to `account`. */
async function cardLink(account) {
  const outbox = path.join(data, 'outbox');
  for (let tries = 0; tries < 100; tries += 1) {
    for (const file of readdirSync(outbox).sort().reverse()) {
      const mail = readFileSync(path.join(outbox, file), 'utf8').replaceAll('=\r\n', '').replaceAll('=3D', '=');
      const [link] = mail.match(/http:\/\/[^\s"]*\/card-links\/[0-9A-Z]{26}/) ?? [];
      if (link && mail.includes(`To: ${account}@`)) return link;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error(`no mail to ${account} has a card link`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--no-proxy-server', '--ignore-certificate-errors'],
});
let shown = 0;

/** Opens `url` on a phone, calls `act`, and checks the page. `status` is the expected status of the first response. */
async function visit(name, url, { status = 200, texts = [], act = async () => {}, scheme = 'light', width = 360 } = {}) {
  const tab = await browser.newPage({ viewport: { width, height: 800 }, colorScheme: scheme });
  tab.setDefaultTimeout(20_000);
  const problems = [];
  const isExpected = (message) => message.location().url.endsWith('/favicon.ico') || (status >= 400 && message.text().includes(`${status}`));
  tab.on('console', (message) => message.type() === 'error' && !isExpected(message) && problems.push(message.text()));
  tab.on('pageerror', (error) => problems.push(String(error)));
  const response = await tab.goto(url);
  if (response) assert.equal(response.status(), status, `${name}: ${await tab.innerText('body')}`);
  await act(tab);
  await tab.waitForLoadState();
  const body = await tab.innerText('body');
  for (const text of texts) assert(body.includes(text), `${name} must show ${text}: ${body}`);
  const excess = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert(excess <= 0, `${name} is ${excess} pixels wider than a phone`);
  assert.deepEqual(problems, [], name);
  if (process.env.PAGES_SCREENSHOTS) {
    await tab.screenshot({ path: path.join(process.env.PAGES_SCREENSHOTS, `${name}-${scheme}-${width}.png`), fullPage: true });
  }
  shown += 1;
  await tab.close();
}

const enterCard = async (tab) => {
  await tab.getByRole('button', { name: 'Karte hinterlegen' }).click();
  await tab.getByLabel('Mastercard, succeeds').check();
  await tab.getByRole('button', { name: 'Use this card' }).click();
};

let lambda;
try {
  await signUp('paid', 'en', 'pm_card_visa');
  await signUp('owed', 'de', 'pm_card_chargeDeclinedInsufficientFunds');
  await signUp('owed2', 'de', 'pm_card_chargeDeclinedInsufficientFunds');
  dueday('run', 'payments');
  const [receipt] = (await ask('GET', '/accounts/paid/receipts')).data;
  const variables = {
    AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_REGION: 'eu-west-1', DUEDAY_DYNAMODB_ENDPOINT: dynamodb,
    DUEDAY_TABLE: 'dueday', DUEDAY_GATEWAY: gateway, DUEDAY_MERCHANT: 'Example Shop', DUEDAY_DELIVERY_QUEUE: 'http://127.0.0.1:1/none',
    DUEDAY_SCOPE_PREFIX: 'none',
  };
  lambda = await serveFunction(path.join(target, 'debug/api'), variables, { scope: 'admin' });
  for (const [where, base, owing] of [['machine', api, 'owed'], ['lambda', lambda.url, 'owed2']]) {
    await visit(`${where}-index`, `${base}/`);
    await visit(`${where}-wrong-address`, `${base}/nowhere`, { status: 404, texts: ['Not found'] });
    for (const scheme of ['light', 'dark']) {
      const texts = [receipt.number, 'Visa •••• 4242', 'Month'];
      await visit(`${where}-receipt`, `${base}/accounts/paid/receipts/${receipt.number}`, { texts, scheme });
    }
    const link = new URL(await cardLink(owing)).pathname;
    await visit(`${where}-card-link`, base + link, { texts: ['12,99', 'Karte hinterlegen'] });
    await visit(`${where}-checkout`, base + link, {
      act: (tab) => tab.getByRole('button', { name: 'Karte hinterlegen' }).click(), texts: ['Mastercard, succeeds'],
    });
    await visit(`${where}-card-saved`, base + link, { act: enterCard, texts: ['Ihre Karte ist gespeichert'] });
    dueday('run', 'payments');
    await visit(`${where}-card-link-paid`, base + link, { texts: ['Keine offene Zahlung'] });
  }
  await visit('machine-docs', `${api}/docs/`, { act: (tab) => tab.getByText('/card-links/{link}').first().waitFor(), width: 1200 });
  for (const file of readdirSync(path.join(target, 'mails')).filter((name) => name.endsWith('.html'))) {
    for (const width of [360, 640]) await visit(`mail-${file}`, `file://${path.join(target, 'mails', file)}`, { width });
  }
  console.log(`${shown} pages and mails shown in Chromium ${browser.version()}`);
} finally {
  await browser.close();
  lambda?.stop();
}
