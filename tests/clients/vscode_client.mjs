// vscode-jsonrpc: calls in both directions, notifications, cancellation, progress and errors, behind Content-Length over
// TCP and stdio.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';

const rpc = createRequire(path.join(process.env.PACKAGES, 'x'))('vscode-jsonrpc/node');

async function check(reader, writer) {
  const connection = rpc.createMessageConnection(reader, writer);
  connection.onRequest('answer', (question) => `to ${question}`);
  connection.listen();
  assert.equal(await connection.sendRequest('subtract', 42, 23), 19);
  assert.equal(await connection.sendRequest('subtract', rpc.ParameterStructures.byName, { minuend: 42, subtrahend: 23 }), 19);
  await connection.sendNotification('echo', 'nobody waits');
  const numbers = Array.from({ length: 100 }, (_, i) => i);
  assert.deepEqual(await Promise.all(numbers.map((i) => connection.sendRequest('echo', i))), numbers);
  assert.equal(await connection.sendRequest('ask', 'a question'), 'to a question');
  await assert.rejects(connection.sendRequest('fail', 7, 'as asked'), { code: 7, message: 'as asked' });

  const giveUp = new rpc.CancellationTokenSource();
  const sleeping = connection.sendRequest('sleep', 100_000, giveUp.token);
  giveUp.cancel();
  await assert.rejects(sleeping, { code: rpc.LSPErrorCodes?.RequestCancelled ?? -32800 });

  const items = [];
  const progress = connection.onProgress(new rpc.ProgressType(), 'token', (value) => items.push(value));
  await connection.sendRequest('count', rpc.ParameterStructures.byName, { n: 5, partialResultToken: 'token' });
  assert.deepEqual(items, [0, 1, 2, 3, 4]);
  progress.dispose();
  connection.dispose();
}

const socket = net.connect(Number(process.env.TCP_PORT), '127.0.0.1');
await once(socket, 'connect');
await check(new rpc.SocketMessageReader(socket), new rpc.SocketMessageWriter(socket));
socket.destroy();

const server = spawn(process.env.SERVED, ['stdio:'], { stdio: ['pipe', 'pipe', 'ignore'] });
await check(new rpc.StreamMessageReader(server.stdout), new rpc.StreamMessageWriter(server.stdin));
server.stdin.end();
assert.equal((await once(server, 'exit'))[0], 0);
