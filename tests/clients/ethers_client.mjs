// ethers: calls, batches and errors by HTTP; the same, and subscriptions to blocks, as JSON over a unix socket, at a server
// and through a broker.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';

const { IpcSocketProvider, JsonRpcProvider, Network } = createRequire(path.join(process.env.PACKAGES, 'x'))('ethers');

async function check(provider) {
  assert.equal((await provider.getNetwork()).chainId, 1n);
  assert.equal(await provider.getBlockNumber(), 16);
  assert.equal(await provider.send('subtract', [42, 23]), 19);
  assert.deepEqual(await provider.send('echo', [{ nested: [1, null, 'ü', 1.5] }]), { nested: [1, null, 'ü', 1.5] });
  // Sent together, as one batch by HTTP.
  const results = await Promise.all([...Array(50).keys()].map((i) => provider.send('subtract', [i, 1])));
  assert.deepEqual(results, [...Array(50).keys()].map((i) => i - 1));
  await assert.rejects(provider.send('fail', [7, 'as asked']), /as asked/);
  await assert.rejects(provider.send('nothing_of_that_name', []), /not found|does not exist|-32601/);
}

const url = `http://127.0.0.1:${process.env.TCP_PORT}/rpc`;
const byHttp = new JsonRpcProvider(url);
await check(byHttp);
byHttp.destroy();

// Of a batch beyond the limit each call is refused.
const tooLarge = new JsonRpcProvider(url, undefined, { batchMaxCount: 1001, staticNetwork: Network.from(1) });
const refused = await Promise.allSettled([...Array(1001).keys()].map((i) => tooLarge.send('subtract', [i, 1])));
for (const { reason } of refused) assert.deepEqual([reason.error.code, reason.error.data.limit], [-32600, 'batch']);
tooLarge.destroy();

async function checkBlocks(file) {
  const byIpc = new IpcSocketProvider(file);
  await check(byIpc);
  const blocks = [];
  await new Promise((resolve) => {
    byIpc.on('block', (number) => {
      blocks.push(number);
      if (blocks.length === 10) resolve();
    });
  });
  assert.deepEqual(blocks, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await byIpc.off('block');
  assert.equal(await byIpc.send('eth_unsubscribe', ['0x1']), false);
  await byIpc.destroy();
}

await checkBlocks(process.env.UNIX_PATH);
await checkBlocks(process.env.BROKER_PATH);
process.exit(0);
