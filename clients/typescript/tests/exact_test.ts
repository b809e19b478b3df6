// The option bigint: wherever a value comes from the server, no digit of an integer is lost.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { type Client, connect } from "../src/index.js";
import { deferred, failure } from "./failure.js";
import type { Message, Peer } from "./scripted_server.js";
import { open, serveEachTest } from "./scripted_session.js";

const large = 18446744073709551615n;
const written = String(large);

describe("by WebSocket", () => {
  let client: Client;
  let peer: Peer;
  serveEachTest();
  beforeEach(async () => {
    [client, peer] = await open({ bigint: true });
  });

  const answer = async (method: string, what: string): Promise<void> => {
    const { id } = (await peer.got(method)) as { id: number };
    peer.say(`{"jsonrpc":"2.0",${what},"id":${String(id)}}`);
  };

  it("results and errors' data have all digits, unless the call does not want them", async () => {
    const result = client.result();
    await answer("result", `"result":{"n":${written}}`);
    expect(await result).toEqual({ n: large });
    const error = failure(client.error());
    await answer("error", `"error":{"code":1,"message":"no","data":{"n":${written}}}`);
    expect(await error).toMatchObject({ code: 1, data: { n: large } });
    const plain = failure(client.plain.with({ bigint: false })());
    await answer("plain", `"error":{"code":1,"message":"no","data":{"n":${written}}}`);
    expect((await plain).data).toEqual({ n: 2 ** 64 });
  });

  it("items, and the error that ends a stream, have them", async () => {
    const stream = client.numbers.stream();
    const first = stream.next();
    const { id } = (await peer.got("numbers")) as { id: number };
    peer.say(`{"jsonrpc":"2.0","method":"rpc.item","params":{"id":${String(id)},"seq":0,"value":${written}}}`);
    expect(await first).toEqual({ done: false, value: large });
    await answer("numbers", `"error":{"code":1,"message":"no","data":${written}}`);
    expect((await failure(stream.next())).data).toBe(large);
  });

  it("each call of a batch has them, and each provider's outcome", async () => {
    const both = client.batch((b) => Promise.allSettled([b.one(), b.two()]));
    const calls = (await peer.next()) as Message[];
    peer.say(
      `[{"jsonrpc":"2.0","error":{"code":1,"message":"no","data":${written}},"id":${String(calls[1].id)}},` +
        `{"jsonrpc":"2.0","result":${written},"id":${String(calls[0].id)}}]`,
    );
    expect(await both).toMatchObject([{ value: large }, { reason: { data: large } }]);
    const all = client.callAll("each");
    await answer(
      "rpc.call_all",
      `"result":[{"result":${written}},{"error":{"code":1,"message":"no","data":${written}}}]`,
    );
    expect(await all).toMatchObject([{ result: large }, { error: { data: large } }]);
  });

  it("events, params, and what a handler answers have them", async () => {
    const heard = deferred<unknown>();
    client.subscribe("news", (_topic, value) => {
      heard.resolve(value);
    });
    peer.say(`{"jsonrpc":"2.0","method":"news","params":[${written}]}`);
    expect(await heard.promise).toBe(large);
    client.provide("add", (a: bigint, b: { n: bigint }) => a + b.n, { register: false });
    const sum = new Promise<string>((resolve) =>
      peer.socket.on("message", (data: Buffer) => {
        if (data.includes('"id":7')) resolve(data.toString());
      }),
    );
    peer.say(`{"jsonrpc":"2.0","method":"add","params":[${written},{"n":${written}}],"id":7}`);
    expect(await sum).toBe(`{"jsonrpc":"2.0","result":${String(large * 2n)},"id":7}`);
  });
});

it("by HTTP errors' data have all digits as well, in a response, a batch and a stream", async () => {
  const error = `"error":{"code":1,"message":"no","data":${written}}`;
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data: Buffer) => (body += data.toString()));
    request.on("end", () => {
      const message: Message = JSON.parse(body);
      const of = ({ id }: Message): string => `{"jsonrpc":"2.0",${error},"id":${String(id)}}`;
      if (Array.isArray(message)) response.end(`[${message.map(of).join()}]`);
      else if (message.method === "items") {
        const item = `{"jsonrpc":"2.0","method":"rpc.item","params":{"id":${String(message.id)},"seq":0,"value":${written}}}`;
        response.writeHead(200, { "Content-Type": "text/event-stream" });
        response.end(`data: ${item}\n\ndata: ${of(message)}\n\n`);
      } else response.end(of(message));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = await connect(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, { bigint: true });
  expect((await failure(client.f())).data).toBe(large);
  expect((await failure(client.f.with({ bigint: false })())).data).toBe(2 ** 64);
  const both = await client.batch((b) => Promise.allSettled([b.one(), b.two.with({ bigint: false })()]));
  expect(both).toMatchObject([{ reason: { data: large } }, { reason: { data: 2 ** 64 } }]);
  const stream = client.items.stream();
  expect(await stream.next()).toEqual({ done: false, value: large });
  expect((await failure(stream.next())).data).toBe(large);
  await client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

it("by HTTP a stream that goes on behind its response is not read any further", async () => {
  const gone = deferred();
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data: Buffer) => (body += data.toString()));
    request.on("end", () => {
      const { id } = JSON.parse(body) as { id: number };
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.on("close", () => {
        gone.resolve();
      });
      response.write(`data: {"jsonrpc":"2.0","result":null,"id":${String(id)}}\n\n`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = await connect(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  expect(await client.items.stream().next()).toEqual({ done: true, value: undefined });
  await gone.promise;
  await client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}, 10_000);
