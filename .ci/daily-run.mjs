// Executes the state machines with an interpreter of the Amazon States Language and the functions' binaries on a local
// system. Where an execution waits, the script advances the system's clock instead.
//
//     node .ci/daily-run.mjs FOLDER_OF_NODE_MODULES
//
// It needs `cargo build`, and libfaketime (Debian's package faketime).
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

// The interpreter needs Promise.withResolvers, which Node.js has since version 22.
Promise.withResolvers ??= () => {
  let resolve, reject;
  const promise = new Promise((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
};

const root = path.resolve(import.meta.dirname, '..');
const { StateMachine } = createRequire(path.resolve(process.argv[2]) + '/')('aws-local-stepfunctions');
const target = path.join(process.env.CARGO_TARGET_DIR ?? path.join(root, 'target'), 'debug');
const folder = mkdtempSync(path.join(tmpdir(), 'dueday-'));
const offset = path.join(folder, 'offset');
const children = new Set();

/** libfaketime shifts the clock of all programs by the offset in a file. */
const libfaketime = ['/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/usr/lib']
  .map((lib) => path.join(lib, 'faketime/libfaketimeMT.so.1'))
  .find(existsSync);
assert(libfaketime, 'libfaketime is not installed');
const clock = {
  LD_PRELOAD: libfaketime,
  FAKETIME_TIMESTAMP_FILE: offset,
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
};
let moved = 0;
const moveClock = (seconds) => writeFileSync(offset, `${(moved += seconds) < 0 ? '' : '+'}${moved}s`);
const now = () => new Date(Date.now() + moved * 1000);

function start(program, args, environment) {
  const child = spawn(path.join(target, program), args, {
    env: { PATH: process.env.PATH, ...clock, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (child.output += data));
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** A local system with its table and the sandbox gateway. */
class System {
  constructor(name) {
    this.data = path.join(folder, name);
    this.environment = { DUEDAY_DATA: this.data, DUEDAY_GATEWAY_RATE: '10000' };
  }

  async start() {
    const ports = ['--api-port', '0', '--dynamodb-port', '0', '--gateway-port', '0', '--billing-time', '19:00'];
    this.server = start('dueday', ports, this.environment);
    const running = path.join(this.data, 'running.json');
    for (let tries = 0; ; tries += 1) {
      assert(tries < 300 && this.server.exitCode === null, `the server does not respond: ${this.server.output}`);
      await sleep(100);
      // The file may exist before it has contents.
      const contents = existsSync(running) && readFileSync(running, 'utf8');
      if (!contents) continue;
      Object.assign(this, JSON.parse(contents));
      // The server runs both batches at its start. Wait for the end of these runs: they must not process rows of a test.
      if (this.server.output.includes('next run at')) return this;
    }
  }

  command(...args) {
    const environment = { ...process.env, ...clock, ...this.environment };
    return execFileSync(path.join(target, 'dueday'), args, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  }

  /** Imports `count` subscriptions whose payments are due in `inDays` days. */
  import(count, inDays) {
    const columns = 'account,email,name,locale,external_id,sku,product_name,payment_day,amount,currency,customer,payment_method,first_payment_date';
    const due = new Date(now().getTime() + inDays * 86_400_000).toISOString().slice(0, 10);
    const row = (n) => `a${n},a${n}@example.com,A ${n},en,${n},gold,Gold plan,${Number(due.slice(8))},12.99,EUR,cus_a${n},pm_card_visa,${due}`;
    const file = path.join(folder, 'subscriptions.csv');
    writeFileSync(file, [columns, ...Array.from({ length: count }, (_, n) => row(n))].join('\n') + '\n');
    this.command('import', file);
  }

  receipts() {
    return this.command('export', 'receipts', '--format', 'jsonl').trim().split('\n').filter(Boolean).length;
  }

  stop() {
    this.server.kill('SIGINT');
    return once(this.server, 'exit');
  }
}

/** Returns the files of the mails in a folder. */
function mailsIn(folder) {
  const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.eml')) : [];
  return files.map((file) => path.join(folder, file));
}

/** Returns the account to which the mail in a file was sent. */
const recipient = (file) => /^To: .*?(a\d+)@example\.com/m.exec(readFileSync(file, 'utf8'))[1];

/** Forwards all requests to the gateway at `url`, and calls `onCharge` with the number of charges before it forwards the response to
 * a charge. Returns its own URL. */
async function countCharges(url, onCharge) {
  let charges = 0;
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = parts.length ? Buffer.concat(parts) : undefined;
    const { host, connection, 'content-length': _, ...headers } = request.headers;
    const result = await fetch(url + request.url, { method: request.method, headers, body });
    const content = Buffer.from(await result.arrayBuffer());
    if (request.method === 'POST' && request.url === '/v1/payments') onCharge((charges += 1));
    response.writeHead(result.status, { 'content-type': result.headers.get('content-type') ?? 'application/json' }).end(content);
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** Runs a function as Lambda does: one process for each concurrent invocation, which later invocations reuse. */
class Lambda {
  constructor(program, environment, secondsToWork) {
    Object.assign(this, { program, environment, secondsToWork, processes: [], idle: [], invocations: 0, errors: [] });
    /** Called for each new instance. Returns the environment variables that only this instance has. */
    this.prepare = () => ({});
    /** Called at each invocation with its payload and instance. May kill the instance's process. */
    this.onInvoke = () => {};
  }

  async invoke(payload) {
    this.invocations += 1;
    const instance = this.idle.pop() ?? (await this.startInstance());
    const { promise, resolve, reject } = Promise.withResolvers();
    instance.result = { resolve, reject };
    // The function starts no charge with less than 57 seconds left.
    const deadline = now().getTime() + (57 + this.secondsToWork) * 1000;
    instance.next({ payload, deadline });
    this.onInvoke(payload, instance);
    const result = await promise.catch((error) => {
      this.errors.push(String(error));
      throw error;
    });
    this.idle.push(instance);
    return { StatusCode: 200, Payload: result };
  }

  async startInstance() {
    const instance = { events: [], requests: [] };
    instance.next = (event) => (instance.requests.length ? instance.requests.shift()(event) : instance.events.push(event));
    const server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      const body = parts.length ? JSON.parse(Buffer.concat(parts)) : null;
      if (request.url.endsWith('/invocation/next')) {
        const event = instance.events.shift() ?? (await new Promise((resolve) => instance.requests.push(resolve)));
        response.writeHead(200, {
          'content-type': 'application/json',
          'lambda-runtime-aws-request-id': randomUUID(),
          'lambda-runtime-deadline-ms': String(event.deadline),
          'lambda-runtime-invoked-function-arn': 'arn:aws:lambda:eu-west-1:123456789012:function:' + this.program,
        });
        return response.end(JSON.stringify(event.payload));
      }
      response.writeHead(202).end();
      if (request.url.endsWith('/response')) instance.result.resolve(body);
      else if (request.url.endsWith('/error')) instance.result.reject(new NamedError(body.errorType, body.errorMessage));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    instance.process = start(this.program, [], {
      ...this.environment,
      ...(await this.prepare(instance)),
      AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${server.address().port}`,
      AWS_LAMBDA_FUNCTION_NAME: this.program,
      AWS_LAMBDA_FUNCTION_VERSION: '1',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_REGION: 'local',
    });
    this.processes.push(instance.process);
    instance.process.once('exit', () => {
      server.close();
      server.closeAllConnections();
      instance.result?.reject(new NamedError('Runtime.ExitError', 'the process has ended: ' + instance.process.output));
    });
    return instance;
  }

  stop() {
    this.idle.forEach((instance) => instance.process.kill());
  }
}

class NamedError extends Error {
  constructor(name, message) {
    super(message);
    this.name = name;
  }
}

function definition(file) {
  const values = { Partition: 'aws', FunctionArn: 'batch', ShardWalkArn: 'walk', ShardsAtOnce: '4', FunctionTimeout: '900' };
  const text = readFileSync(path.join(root, 'statemachine', file), 'utf8');
  return JSON.parse(text.replace(/\$\{(\w+)\}/g, (_, name) => values[name]));
}

/** Executes the state machine of a day with the function `lambda`. Returns its output or its error, the number of waits for
 * the lease, and the number of waits for another execution. */
async function execute(lambda) {
  let waits = 0;
  const invoke = ({ Payload }) => lambda.invoke(Payload);
  const shortRetries = (state) => ({ [state]: [50, 50, 50, 50, 50, 50, 50, 50] });
  const walk = async ({ Input }) => {
    const options = { overrides: { taskResourceLocalHandlers: { Walk: invoke }, retryIntervalOverrides: shortRetries('Walk') } };
    const walked = new StateMachine(definition('shard-walk.asl.json')).run(Input, options).result;
    return { Output: await walked.catch((error) => {
      lambda.errors.push(`the walk of shard ${Input.shard}: ${error}`);
      throw error;
    }) };
  };
  const machine = definition('daily-run.asl.json');
  const wait = machine.States.WaitForTheLease;
  // Shorten the interpreter's wait, and advance the clock by the same time instead.
  machine.States.WaitForTheLease = { ...wait, Next: 'MoveClock' };
  machine.States.MoveClock = { Type: 'Task', Resource: 'arn:aws:states:::lambda:invoke', ResultPath: null, Next: wait.Next };
  const move = ({ begun }) => (waits += 1, moveClock(begun.lease_seconds + 1));
  let others = 0;
  const begin = async (state) => {
    const result = await invoke(state);
    if (result.Payload.held_by !== null) others += 1;
    return result;
  };
  const name = randomUUID();
  const execution = new StateMachine(machine).run({ scheduled_time: now().toISOString() }, {
    context: { Execution: { Id: name } },
    overrides: {
      taskResourceLocalHandlers: { Begin: begin, Judge: invoke, WalkShard: walk, MoveClock: move },
      retryIntervalOverrides: { ...shortRetries('Begin'), ...shortRetries('Judge'), ...shortRetries('WalkShard') },
      waitTimeOverrides: { WaitForTheLease: 1, WaitForTheOtherExecution: 500 },
    },
  });
  const ended = await execution.result.then((output) => ({ output }), (error) => ({ error: `${error.name}: ${error.message}` }));
  return { ...ended, waits, ...(others > 0 && { others }) };
}

const rows = 2000;
let passed = 0;
const done = { done: true, wait: false, cause: '' };

/** Runs the test `run` with a new system, on which `rows` payments (or reminders) are due, and with the batch's function. */
async function test(name, secondsToWork, run, batch = 'payments') {
  const began = Date.now();
  // Set the clock to 09:00 UTC, far from midnight and from the system's own daily run.
  moved = 0;
  moveClock(Math.round((new Date().setUTCHours(9, 0, 0, 0) - Date.now()) / 1000));
  const system = await new System(name.replaceAll(' ', '-')).start();
  system.import(rows, batch === 'payments' ? 0 : 7);
  const environment = {
    DUEDAY_DYNAMODB_ENDPOINT: system.dynamodb,
    DUEDAY_GATEWAY: system.gateway,
    DUEDAY_GATEWAY_RATE: '10000',
    DUEDAY_MAIL_URL: 'outbox:' + path.join(system.data, 'reminders'),
    DUEDAY_MAIL_FROM: 'billing@example.com',
    DUEDAY_MERCHANT: 'Example Shop',
  };
  const lambda = new Lambda(batch, environment, secondsToWork);
  await run(system, lambda).catch((error) => {
    const logged = lambda.processes.flatMap((process) => process.output.split('\n'));
    // Leave out the lines about rows that were processed without an error.
    console.error(`${name} ... FAILED`, logged.filter((line) => !line.includes('"level":"INFO"')).join('\n'));
    throw error;
  });
  lambda.stop();
  await system.stop();
  passed += 1;
  console.log(`${name} ... ok (${lambda.invocations} invocations, ${((Date.now() - began) / 1000).toFixed(1)} s)`);
}

try {
  await test('a day that takes longer than one invocation is completed by several invocations', 1, async (system, lambda) => {
    assert.deepEqual(await execute(lambda), { output: done, waits: 0 }, lambda.errors.join());
    assert.equal(system.receipts(), rows);
    assert(lambda.invocations > 6, 'each shard needs at least two invocations');
    assert.deepEqual(lambda.errors, []);
    const again = await execute(lambda);
    assert.equal(again.output?.done, true, again.error);
    assert.equal(system.receipts(), rows);
  });

  await test('a shard that always fails does not stop the other shards', 60, async (system, lambda) => {
    // The process is killed before it receives the event.
    lambda.onInvoke = (payload, instance) => payload.shards?.[0] === 2 && instance.process.kill('SIGKILL');
    const ended = await execute(lambda);
    assert.match(ended.error, /1 of 4 shards are not done: shard 2 missing/);
    const charged = system.receipts();
    assert(charged > rows / 2 && charged < rows, `${charged}`);
    lambda.onInvoke = () => {};
    assert.deepEqual((await execute(lambda)).output, done, lambda.errors.join('\n'));
    assert.equal(system.receipts(), rows);
  });

  await test('attempts of a killed invocation are settled after one lease', 60, async (system, lambda) => {
    let kills = 0;
    // Kill the first two instances that reach their 20th charge: the gateway makes that charge, but the instance receives no response.
    lambda.prepare = async (instance) => ({
      DUEDAY_GATEWAY: await countCharges(system.gateway, (charges) => {
        if (charges === 20 && kills < 2) (kills += 1), instance.process.kill('SIGKILL');
      }),
    });
    assert.deepEqual(await execute(lambda), { output: done, waits: 1 }, lambda.errors.join('\n'));
    assert.equal(kills, 2);
    assert.equal(system.receipts(), rows);
    // The audit exits with an error if it finds a double payment or a payment without a receipt.
    system.command('audit', '--gateway-list');
  });

  for (const killed of [1, 3, 6]) {
    const name = `reminders claimed by ${killed} killed invocations are sent after one lease`;
    await test(name, 60, async (system, lambda) => {
      let kills = 0;
      const outboxes = [];
      lambda.prepare = (instance) => {
        outboxes.push((instance.outbox = path.join(system.data, `outbox-${outboxes.length}`)));
        return { DUEDAY_MAIL_URL: 'outbox:' + instance.outbox };
      };
      lambda.onInvoke = (payload, { process, outbox }) => {
        if (!payload.shards || kills === killed) return;
        kills += 1;
        // Kill the process in the middle of its work, when it has sent 20 mails itself. It has then claimed further reminders.
        const watcher = setInterval(() => mailsIn(outbox).length >= 20 && process.kill('SIGKILL'), 5);
        process.once('exit', () => clearInterval(watcher));
      };
      const ended = await execute(lambda);
      assert.deepEqual(ended, { output: done, waits: 1 }, lambda.errors.join('\n'));
      const reminded = outboxes.flatMap(mailsIn).map(recipient);
      assert.equal(new Set(reminded).size, rows, 'each reminder was sent');
      assert(reminded.length - rows <= 16 * kills, `${reminded.length - rows} were sent twice by ${kills} kills`);
      system.command('runs', 'reminders');
    }, 'reminders');
  }

  await test('a concurrent execution waits for the first one and finds everything done', 60, async (system, lambda) => {
    const both = await Promise.all([execute(lambda), execute(lambda)]);
    assert(both.every((ended) => ended.output?.done), JSON.stringify(both));
    assert.equal(both.filter((ended) => ended.others > 0).length, 1, JSON.stringify(both));
    assert.equal(system.receipts(), rows);
  });

  await test('a shard that is added during an execution does not fail the execution or the day', 60, async (system, lambda) => {
    lambda.onInvoke = (payload) => payload.shards?.[0] === 0 && system.command('shards', 'set', '6');
    assert.deepEqual(await execute(lambda), { output: done, waits: 0 }, lambda.errors.join('\n'));
    assert.equal(system.receipts(), rows);
    // The command exits with an error if the day is not done.
    system.command('runs', 'payments');
  });

  await test('switching charging off fails the day, and after switching it on the day is completed', 60, async (system, lambda) => {
    // With this rate, the execution takes at least five seconds.
    lambda.environment.DUEDAY_GATEWAY_RATE = String(rows / 5);
    const executing = execute(lambda);
    await sleep(1000);
    system.command('charging', 'off');
    const ended = await executing;
    assert.match(ended.error, /stopped \(charging is switched off\)/);
    const charged = system.receipts();
    assert(charged < rows, 'charging was switched off too late for this test');
    system.command('charging', 'on');
    assert.deepEqual((await execute(lambda)).output, done, lambda.errors.join('\n'));
    assert.equal(system.receipts(), rows);
  });

  console.log(`${passed} passed, 0 failed`);
} finally {
  children.forEach((child) => child.kill('SIGKILL'));
  rmSync(folder, { recursive: true, force: true });
}
