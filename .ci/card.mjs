// Gives a test card in Chromium, as a customer does: opens the gateway's page, submits it, follows the redirects, and checks by the
// API that the card was saved.
//
//     .ci/with-server node .ci/card.mjs FOLDER_OF_NODE_MODULES
//     .ci/like-stripe .ci/with-server node .ci/card.mjs FOLDER_OF_NODE_MODULES
//
// With DUEDAY_ACCOUNT_URL set, the customer ends on the merchant's page, which is a server of this script under that host name.
// CARD_SCREENSHOT names a PNG file to keep a picture of the card page in.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import path from 'node:path';

const { chromium } = createRequire(path.resolve(process.argv[2]) + '/')('playwright-core');
const api = process.env.DUEDAY_API;
const accountUrl = process.env.DUEDAY_ACCOUNT_URL && new URL(process.env.DUEDAY_ACCOUNT_URL);
const account = 'acme';

/** The API's response to a program on this machine. */
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

/** The merchant's own page, to which the customer is redirected in the end. */
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

/** Opens a setup's page in a new tab, and does `act` there. Returns the last page and the requests that led to it. */
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

function endsOnTheLastPage({ shown }, heading) {
  assert.deepEqual(shown.problems, [], JSON.stringify(shown));
  if (accountUrl) {
    assert.equal(shown.url, accountUrl.href, JSON.stringify(shown));
    assert(shown.text.includes('Referer: undefined'), `the page's address is a secret of the customer's: ${shown.text}`);
  } else {
    assert(shown.url.startsWith(api + '/payment-method-setups/'), JSON.stringify(shown));
    assert(shown.text.includes(heading), JSON.stringify(shown));
  }
}

const methodOf = async () => (await ask('GET', `/accounts/${account}/subscriptions`)).data[0].payment_method;

try {
  await ask('PUT', `/accounts/${account}`, { email: 'billing@acme.example.com', name: 'Acme' });
  await ask('POST', `/accounts/${account}/subscriptions`, {
    sku: 'gold', product_name: 'Gold plan', payment_day: 31, amount: 1299, currency: 'EUR',
    payment_method: { customer: 'cus_acme', payment_method: 'pm_card_visa' },
  }, { 'idempotency-key': 'card' });

  // A customer who gives no card.
  const left = await visit((tab) => tab.getByRole('link', { name: 'Go back without one' }).click());
  endsOnTheLastPage(left, 'No card was given');
  const open = await ask('GET', `/accounts/${account}/payment-method-setups/${left.setup.id}`);
  assert.deepEqual([open.status, open.payment_method], ['open', null]);
  assert.equal((await methodOf()).payment_method, 'pm_card_visa');

  // One who gives one.
  const given = await visit(async (tab) => {
    await tab.getByLabel('Mastercard that is charged').check();
    if (process.env.CARD_SCREENSHOT) await tab.screenshot({ path: process.env.CARD_SCREENSHOT, fullPage: true });
    await tab.getByRole('button', { name: 'Use this card' }).click();
  });
  endsOnTheLastPage(given, 'Your card is saved');
  const complete = await ask('GET', `/accounts/${account}/payment-method-setups/${given.setup.id}`);
  assert.equal(complete.status, 'complete');
  assert.equal(complete.payment_method.payment_method, 'pm_card_mastercard');
  assert.equal((await methodOf()).payment_method, 'pm_card_mastercard');

  // The closed page leads on, and takes nothing.
  const again = await visit((tab) => tab.goto(given.setup.url));
  endsOnTheLastPage(again, 'Your card is saved');
  console.log(`given in Chromium ${browser.version()}: ${given.shown.requests.map((request) => request.join(' ')).join(', ')}`);
} finally {
  await browser.close();
  merchant.close();
}
