// jayson: calls, named parameters, batches and errors, by HTTP and as bare JSON over TCP.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';

const jayson = createRequire(path.join(process.env.PACKAGES, 'x'))('jayson/promise');
const endpoint = { host: '127.0.0.1', port: Number(process.env.TCP_PORT) };

for (const client of [jayson.Client.http({ ...endpoint, path: '/rpc' }), jayson.Client.tcp(endpoint)]) {
  const result = async (...call) => (await client.request(...call)).result;
  assert.equal(await result('subtract', [42, 23]), 19);
  assert.equal(await result('subtract', { subtrahend: 23, minuend: 42 }), 19);
  assert.deepEqual(await result('echo', [{ nested: [1, null, 'ü', 1.5] }]), { nested: [1, null, 'ü', 1.5] });
  const failed = await client.request('fail', [7, 'as asked']);
  assert.equal(failed.error.code, 7);
  assert.equal(failed.error.message, 'as asked');
  const replies = await client.request([
    client.request('subtract', [5, 3], undefined, false),
    client.request('sum', [1, 2, 3], undefined, false),
  ]);
  assert.deepEqual(replies.map((reply) => reply.result).sort(), [2, 6]);

  // Of a batch beyond the limit each call is refused.
  const calls = [...Array(1001).keys()].map((i) => client.request('subtract', [i, 1], undefined, false));
  const refused = await client.request(calls);
  assert.equal(refused.length, 1001);
  for (const { error } of refused) assert.deepEqual([error.code, error.data.limit], [-32600, 'batch']);
}
