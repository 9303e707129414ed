// Enters a test card in Chromium, like a customer: opens the gateway's checkout page, submits it, follows the redirects,
// and checks with the API that the card was saved.
//
//     .ci/with-server node .ci/card.mjs FOLDER_OF_NODE_MODULES
//     .ci/like-stripe .ci/with-server node .ci/card.mjs FOLDER_OF_NODE_MODULES
//
// If DUEDAY_ACCOUNT_URL is set, the customer is finally redirected to the merchant's web page, which this script serves
// with that host name. If CARD_SCREENSHOT is set to the name of a PNG file, the script saves a screenshot of the checkout
// page there.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const { chromium } = createRequire(path.resolve(process.argv[2]) + '/')('playwright-core');
const api = process.env.DUEDAY_API;
const accountUrl = process.env.DUEDAY_ACCOUNT_URL && new URL(process.env.DUEDAY_ACCOUNT_URL);
const account = 'acme';

/** Sends a request to the API as a program on this machine, and returns the JSON of the response. */
async function ask(method, url, body, headers = {}) {
  const response = await fetch(api + url, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

/** The merchant's web page, to which the customer is finally redirected. */
const merchant = createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/html' });
  response.end(`<h1>The merchant's page</h1><p>Origin: ${request.headers.origin}, Referer: ${request.headers.referer}</p>`);
});
merchant.listen(0, '127.0.0.1');
await once(merchant, 'listening');

const rules = accountUrl ? [`--host-resolver-rules=MAP ${accountUrl.host} 127.0.0.1:${merchant.address().port}`] : [];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--no-proxy-server', ...rules],
});

/** Creates a payment method setup, opens its checkout page in a new tab, and runs `act` there. Returns the setup, and the
 * last web page with the problems and the navigation requests before it. */
async function visit(act) {
  const setup = await ask('POST', `/accounts/${account}/payment-method-setups`, {});
  const tab = await browser.newPage();
  tab.setDefaultTimeout(20_000);
  const problems = [];
  const requests = [];
  // Browsers request an icon for every site.
  const isProblem = (message) => message.type() === 'error' && !message.location().url.endsWith('/favicon.ico');
  tab.on('console', (message) => isProblem(message) && problems.push(message.text()));
  tab.on('request', (request) => request.isNavigationRequest() && requests.push([request.method(), request.url()]));
  tab.on('requestfailed', (request) => problems.push(`${request.url()}: ${request.failure()?.errorText}`));
  await tab.goto(setup.url);
  await act(tab);
  await tab.waitForLoadState();
  const shown = { url: tab.url(), text: await tab.innerText('body'), problems, requests };
  await tab.close();
  return { setup, shown };
}

function assertLastPage({ shown }, heading) {
  assert.deepEqual(shown.problems, [], JSON.stringify(shown));
  if (accountUrl) {
    assert.equal(shown.url, accountUrl.href, JSON.stringify(shown));
    assert(shown.text.includes('Referer: undefined'), `the merchant must not receive the secret address of the setup page: ${shown.text}`);
  } else {
    assert(shown.url.startsWith(api + '/payment-method-setups/'), JSON.stringify(shown));
    assert(shown.text.includes(heading), JSON.stringify(shown));
  }
}

const storedPaymentMethod = async () => (await ask('GET', `/accounts/${account}/subscriptions`)).data[0].payment_method;

try {
  await ask('PUT', `/accounts/${account}`, { email: 'billing@acme.example.com', name: 'Acme' });
  await ask('POST', `/accounts/${account}/subscriptions`, {
    sku: 'gold', product_name: 'Gold plan', payment_day: 31, amount: 1299, currency: 'EUR',
    payment_method: { customer: 'cus_acme', payment_method: 'pm_card_visa' },
  }, { 'idempotency-key': 'card' });

  // The customer leaves the checkout page without entering a card.
  const left = await visit((tab) => tab.getByRole('link', { name: 'Go back without a card' }).click());
  assertLastPage(left, 'No card was entered');
  const open = await ask('GET', `/accounts/${account}/payment-method-setups/${left.setup.id}`);
  assert.deepEqual([open.status, open.payment_method], ['open', null]);
  assert.equal((await storedPaymentMethod()).payment_method, 'pm_card_visa');

  // The customer enters a card.
  const entered = await visit(async (tab) => {
    await tab.getByLabel('Mastercard, succeeds').check();
    if (process.env.CARD_SCREENSHOT) await tab.screenshot({ path: process.env.CARD_SCREENSHOT, fullPage: true });
    await tab.getByRole('button', { name: 'Use this card' }).click();
  });
  assertLastPage(entered, 'Your card is saved');
  const complete = await ask('GET', `/accounts/${account}/payment-method-setups/${entered.setup.id}`);
  assert.equal(complete.status, 'complete');
  assert.equal(complete.payment_method.payment_method, 'pm_card_mastercard');
  assert.equal((await storedPaymentMethod()).payment_method, 'pm_card_mastercard');

  // The used checkout page redirects the customer and accepts no other card.
  const again = await visit((tab) => tab.goto(entered.setup.url));
  assertLastPage(again, 'Your card is saved');
  console.log(`card entered in Chromium ${browser.version()}: ${entered.shown.requests.map((request) => request.join(' ')).join(', ')}`);
} finally {
  await browser.close();
  merchant.close();
}
