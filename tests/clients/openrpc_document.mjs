// OpenRPC's own schema of its documents: holds those of a server and of a broker, in each version, against it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';

const require = createRequire(path.join(process.env.PACKAGES, 'x'));
const { default: Ajv } = require('ajv');
const { openrpcDocument } = require('@open-rpc/meta-schema');
const { jsonSchema } = require('@json-schema-tools/meta-schema');

// The one refers to the other, both to themselves as what they are written in; ajv knows that as draft 7.
const ajv = new Ajv({ strict: false, validateFormats: false });
const plain = ({ $schema, $id, ...schema }) => schema;
for (const id of ['https://meta.json-schema.tools', 'https://meta.json-schema.tools/']) ajv.addSchema(plain(jsonSchema), id);
const validate = ajv.compile(plain(openrpcDocument));

function check(document, origin) {
  assert.ok(validate(document), `${origin}: ${JSON.stringify(validate.errors)}`);
  assert.ok(document.methods.length >= 5, origin);
  // What the schema takes for anything at all: each JSON Schema in it is one.
  const schemas = document.methods.flatMap((method) => [...method.params, method.result]).map(({ schema }) => schema);
  schemas.push(...document.methods.flatMap((method) => method['x-subscription']?.schema ?? []));
  schemas.push(...Object.values(document.components?.schemas ?? {}));
  for (const schema of schemas)
    assert.ok(ajv.validateSchema(schema), `${origin}: ${JSON.stringify(schema)}: ${ajv.errorsText(ajv.errors)}`);
}

async function discovered(file, params) {
  const socket = net.connect(file);
  await once(socket, 'connect');
  socket.write(JSON.stringify({ jsonrpc: '2.0', method: 'rpc.discover', params, id: 1 }) + '\n');
  let text = '';
  for await (const part of socket) {
    text += part;
    if (text.endsWith('\n')) break;
  }
  const { result, error } = JSON.parse(text);
  assert.equal(error, undefined, JSON.stringify(error));
  return result;
}

check(await (await fetch(`http://127.0.0.1:${process.env.TCP_PORT}/openrpc.json`)).json(), '/openrpc.json');
for (const [name, file] of [['server', process.env.UNIX_PATH], ['broker', process.env.BROKER_PATH]]) {
  check(await discovered(file, {}), name);
  for (const version of ['1.2.6', '1.3.2']) {
    const document = await discovered(file, { version });
    assert.equal(document.openrpc, version);
    check(document, `${name} ${version}`);
  }
}

assert.equal(validate({ openrpc: '1.2.6', info: { version: '1' }, methods: [] }), false, 'it has no title');
