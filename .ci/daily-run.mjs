// Executes the state machines with an interpreter of the Amazon States Language, against the functions' binaries on a
// local system, whose clock is moved on where an execution waits.
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

// The interpreter wants what Node.js has from version 22 on.
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

/** Everything that tells the time has its clock moved by what is in the file. */
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
  child.said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (child.said += data));
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** A local system: the table, and the sandbox gateway. */
class System {
  constructor(name) {
    this.data = path.join(folder, name);
    this.environment = { DUEDAY_DATA: this.data, DUEDAY_GATEWAY_RATE: '10000' };
  }

  async start() {
    const ports = ['--api-port', '0', '--dynamodb-port', '0', '--gateway-port', '0', '--billing-time', '21:00'];
    this.server = start('dueday', ports, this.environment);
    const running = path.join(this.data, 'running.json');
    for (let tries = 0; ; tries += 1) {
      assert(tries < 300 && this.server.exitCode === null, `the server does not answer: ${this.server.said}`);
      await sleep(100);
      // It is there before anything is said in it.
      const said = existsSync(running) && readFileSync(running, 'utf8');
      if (!said) continue;
      Object.assign(this, JSON.parse(said));
      if (await fetch(this.api + '/health').then((answer) => answer.ok, () => false)) return this;
    }
  }

  command(...args) {
    const environment = { ...process.env, ...clock, ...this.environment };
    return execFileSync(path.join(target, 'dueday'), args, { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  }

  /** `count` subscriptions whose payment is due in so many days. */
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

  /** The files of the reminders that the function has sent. */
  mails() {
    const folder = path.join(this.data, 'reminders');
    const files = existsSync(folder) ? readdirSync(folder).filter((file) => file.endsWith('.eml')) : [];
    return files.map((file) => path.join(folder, file));
  }

  /** The accounts that a reminder was sent to, each as often as it was. */
  reminded() {
    return this.mails().map((file) => /^To: .*?(a\d+)@example\.com/m.exec(readFileSync(file, 'utf8'))[1]);
  }

  stop() {
    this.server.kill('SIGINT');
    return once(this.server, 'exit');
  }
}

/** A function as Lambda runs it: as many processes as there are invocations at the same time, reused one after the other. */
class Lambda {
  constructor(program, environment, secondsToWork) {
    Object.assign(this, { program, environment, secondsToWork, idle: [], invocations: 0, errors: [] });
    /** Called with each invocation; may kill its process. */
    this.witness = () => {};
  }

  async invoke(payload) {
    this.invocations += 1;
    const instance = this.idle.pop() ?? (await this.instance());
    const { promise, resolve, reject } = Promise.withResolvers();
    instance.answer = { resolve, reject };
    // A charge is begun while 57 seconds are left.
    const deadline = now().getTime() + (57 + this.secondsToWork) * 1000;
    instance.next({ payload, deadline });
    this.witness(payload, instance.process);
    const answered = await promise.catch((error) => {
      this.errors.push(String(error));
      throw error;
    });
    this.idle.push(instance);
    return { StatusCode: 200, Payload: answered };
  }

  async instance() {
    const instance = { waiting: [], asked: [] };
    instance.next = (event) => (instance.asked.length ? instance.asked.shift()(event) : instance.waiting.push(event));
    const server = createServer(async (request, response) => {
      const parts = [];
      for await (const part of request) parts.push(part);
      const body = parts.length ? JSON.parse(Buffer.concat(parts)) : null;
      if (request.url.endsWith('/invocation/next')) {
        const event = instance.waiting.shift() ?? (await new Promise((resolve) => instance.asked.push(resolve)));
        response.writeHead(200, {
          'content-type': 'application/json',
          'lambda-runtime-aws-request-id': randomUUID(),
          'lambda-runtime-deadline-ms': String(event.deadline),
          'lambda-runtime-invoked-function-arn': 'arn:aws:lambda:eu-west-1:123456789012:function:' + this.program,
        });
        return response.end(JSON.stringify(event.payload));
      }
      response.writeHead(202).end();
      if (request.url.endsWith('/response')) instance.answer.resolve(body);
      else if (request.url.endsWith('/error')) instance.answer.reject(new NamedError(body.errorType, body.errorMessage));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    instance.process = start(this.program, [], {
      ...this.environment,
      AWS_LAMBDA_RUNTIME_API: `127.0.0.1:${server.address().port}`,
      AWS_LAMBDA_FUNCTION_NAME: this.program,
      AWS_LAMBDA_FUNCTION_VERSION: '1',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_REGION: 'local',
    });
    instance.process.once('exit', () => {
      server.close();
      server.closeAllConnections();
      instance.answer?.reject(new NamedError('Runtime.ExitError', 'the process has ended: ' + instance.process.said));
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
  const values = { FunctionArn: 'batch', ShardWalkArn: 'walk', ShardsAtOnce: '4', FunctionTimeout: '900' };
  const text = readFileSync(path.join(root, 'statemachine', file), 'utf8');
  return JSON.parse(text.replace(/\$\{(\w+)\}/g, (_, name) => values[name]));
}

/** Executes a day of `lambda`. Answers what came of it: its output, or the error. */
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
  // The interpreter's wait is cut short, and the clock moved on by as much instead.
  machine.States.WaitForTheLease = { ...wait, Next: 'MoveClock' };
  machine.States.MoveClock = { Type: 'Task', Resource: 'arn:aws:states:::lambda:invoke', ResultPath: null, Next: wait.Next };
  const move = ({ begun }) => (waits += 1, moveClock(begun.lease_seconds + 1));
  let others = 0;
  const begin = async (state) => {
    const answer = await invoke(state);
    if (answer.Payload.held_by !== null) others += 1;
    return answer;
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
let told = 0;
const done = { done: true, wait: false, cause: '' };

/** A system of its own with `rows` payments due, or as many reminders, and the function of that batch. */
async function story(name, secondsToWork, tell, batch = 'payments') {
  const began = Date.now();
  // Nine in the morning, far from midnight and from the system's own daily run.
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
  };
  const lambda = new Lambda(batch, environment, secondsToWork);
  await tell(system, lambda);
  lambda.stop();
  await system.stop();
  told += 1;
  console.log(`${name} ... ok (${lambda.invocations} invocations, ${((Date.now() - began) / 1000).toFixed(1)} s)`);
}

try {
  await story('a day longer than its invocations is done by as many as it takes', 1, async (system, lambda) => {
    assert.deepEqual(await execute(lambda), { output: done, waits: 0 }, lambda.errors.join());
    assert.equal(system.receipts(), rows);
    assert(lambda.invocations > 6, 'each shard has gone on at least once');
    assert.deepEqual(lambda.errors, []);
    const again = await execute(lambda);
    assert.equal(again.output?.done, true, again.error);
    assert.equal(system.receipts(), rows);
  });

  await story('a shard that always fails keeps no other from its end', 60, async (system, lambda) => {
    lambda.witness = (payload, process) => payload.shards?.[0] === 2 && process.kill('SIGKILL');
    const ended = await execute(lambda);
    assert.match(ended.error, /1 of 4 shards are not done: shard 2 (open|missing)/);
    const charged = system.receipts();
    assert(charged > rows / 2 && charged < rows, `${charged}`);
    lambda.witness = () => {};
    assert.deepEqual((await execute(lambda)).output, done, lambda.errors.join('\n'));
    assert.equal(system.receipts(), rows);
  });

  await story('what an invocation leaves open when it is killed is settled after one lease', 60, async (system, lambda) => {
    let kills = 0;
    lambda.witness = (payload, process) => {
      if (payload.shards && kills < 2) setTimeout(() => process.kill('SIGKILL'), 250 * ++kills);
    };
    assert.deepEqual(await execute(lambda), { output: done, waits: 1 });
    assert.equal(system.receipts(), rows);
    // It exits with an error if it finds anything: a payment twice, one without a receipt.
    system.command('audit', '--gateway-list');
  });

  for (const killed of [1, 3, 6]) {
    const name = `reminders that ${killed} killed invocations have claimed are sent after one lease`;
    await story(name, 60, async (system, lambda) => {
      let kills = 0;
      lambda.witness = (payload, process) => {
        if (!payload.shards || kills === killed) return;
        // In the middle of its work: it is killed when so many mails have left.
        const mails = 20 * ++kills;
        const looking = setInterval(() => system.mails().length >= mails && process.kill('SIGKILL'), 5);
        process.once('exit', () => clearInterval(looking));
      };
      const ended = await execute(lambda);
      assert.deepEqual(ended, { output: done, waits: 1 }, lambda.errors.join('\n'));
      const reminded = system.reminded();
      assert.equal(new Set(reminded).size, rows, 'each was sent');
      assert(reminded.length - rows <= 16 * kills, `${reminded.length - rows} were sent twice by ${kills} kills`);
      system.command('runs', 'reminders');
    }, 'reminders');
  }

  await story('a second execution at the same time waits for the first, and finds everything done', 60, async (system, lambda) => {
    const both = await Promise.all([execute(lambda), execute(lambda)]);
    assert(both.every((ended) => ended.output?.done), JSON.stringify(both));
    assert.equal(both.filter((ended) => ended.others > 0).length, 1, JSON.stringify(both));
    assert.equal(system.receipts(), rows);
  });

  await story('a shard that is added during an execution fails neither it nor its day', 60, async (system, lambda) => {
    lambda.witness = (payload) => payload.shards?.[0] === 0 && system.command('shards', 'set', '6');
    assert.deepEqual(await execute(lambda), { output: done, waits: 0 }, lambda.errors.join('\n'));
    assert.equal(system.receipts(), rows);
    // It exits with an error if the day is not done.
    system.command('runs', 'payments');
  });

  await story('charging switched off half-way fails the day, and on again it is done', 60, async (system, lambda) => {
    // It takes five seconds at least.
    lambda.environment.DUEDAY_GATEWAY_RATE = String(rows / 5);
    const executing = execute(lambda);
    await sleep(1000);
    system.command('charging', 'off');
    const ended = await executing;
    assert.match(ended.error, /stopped \(charging is switched off\)/);
    const charged = system.receipts();
    assert(charged < rows, 'it was switched off too late to see anything');
    system.command('charging', 'on');
    assert.deepEqual((await execute(lambda)).output, done, lambda.errors.join('\n'));
    assert.equal(system.receipts(), rows);
  });

  console.log(`${told} passed, 0 failed`);
} finally {
  children.forEach((child) => child.kill('SIGKILL'));
  rmSync(folder, { recursive: true, force: true });
}
