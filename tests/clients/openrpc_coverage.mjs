// OpenRPC's test-coverage: calls each method of /openrpc.json with params made from its schemas, and checks each result
// against its own.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.PACKAGES, 'x'));
const coverage = require('@open-rpc/test-coverage').default;
const { parseOpenRPCDocument } = require('@open-rpc/schema-utils-js');

const endpoint = `http://127.0.0.1:${process.env.TCP_PORT}`;
const document = await (await fetch(`${endpoint}/openrpc.json`)).json();
document.servers ??= [{ name: 'here', url: `${endpoint}/rpc` }];
const parsed = await parseOpenRPCDocument(JSON.stringify(document));
// They call back, fail, wait, or need a connection; and the difference of two numbers of 64 bits may have none.
const left = ['ask', 'fail', 'sleep', 'count', 'eth_subscribe', 'subtract'];
const calls = await coverage({ openrpcDocument: parsed, transport: 'http', reporters: ['empty'], skip: left, only: [] });
const failed = calls.filter((call) => !call.valid);
assert.deepEqual(failed.map((call) => [call.methodName, call.params, call.reason, call.error]), []);
assert.ok(calls.length >= 5, `${calls.length} calls`);
process.exit(0);
