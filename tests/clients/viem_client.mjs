// viem: calls, batches and errors by HTTP; calls and subscriptions by WebSocket and as JSON over a unix socket, at a
// server and through a broker.
import assert from 'node:assert/strict';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const from = (file) => import(pathToFileURL(path.join(process.env.PACKAGES, 'viem', '_esm', file)));
const { createPublicClient, http, webSocket } = await from('index.js');
const { ipc } = await from('node/index.js');
const asked = (client, method, ...params) => client.request({ method, params });

async function check(client) {
  assert.equal(await client.getChainId(), 1);
  assert.equal(await asked(client, 'subtract', 42, 23), 19);
  const results = await Promise.all([...Array(50).keys()].map((i) => asked(client, 'subtract', i, 1)));
  assert.deepEqual(results, [...Array(50).keys()].map((i) => i - 1));
  await assert.rejects(asked(client, 'fail', 7, 'as asked'), /as asked/);
  await assert.rejects(asked(client, 'nothing_of_that_name'), /does not exist|not found/);
}

const url = `http://127.0.0.1:${process.env.TCP_PORT}/rpc`;
await check(createPublicClient({ transport: http(url, { batch: true, retryCount: 0 }) }));

// Of a batch beyond the limit each call is refused.
const tooLarge = createPublicClient({ transport: http(url, { batch: { batchSize: 1001 }, retryCount: 0 }) });
const refused = await Promise.allSettled([...Array(1001).keys()].map((i) => asked(tooLarge, 'subtract', i, 1)));
for (const { reason } of refused) assert.deepEqual([reason.code, reason.cause.data.limit], [-32600, 'batch']);

async function checkBlocks(transport) {
  const client = createPublicClient({ transport });
  await check(client);
  const blocks = [];
  const { unsubscribe } = await new Promise((resolve, reject) => {
    const subscribing = client.transport.subscribe({
      params: ['newHeads'],
      onData: async ({ result }) => {
        blocks.push(Number(result.number));
        if (blocks.length === 10) resolve(await subscribing);
      },
      onError: reject,
    });
  });
  assert.deepEqual(blocks.slice(0, 10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await unsubscribe();
  await assert.rejects(client.transport.subscribe({ params: ['nothing'], onData() {} }), { code: -32602 });
}

await checkBlocks(ipc(process.env.UNIX_PATH, { retryCount: 0 }));
await checkBlocks(ipc(process.env.BROKER_PATH, { retryCount: 0 }));
await checkBlocks(webSocket(`ws://127.0.0.1:${process.env.TCP_PORT}/`, { retryCount: 0 }));
process.exit(0);
