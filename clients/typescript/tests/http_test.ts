// What a client makes of the responses of HTTP servers, ours and others (docs/client.md, "By HTTP").
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, connect } from "../src/index.js";
import { eventData } from "../src/event_stream.js";
import { deferred, failure } from "./failure.js";
import type { Message } from "./scripted_server.js";

type Respond = (response: ServerResponse, message: Message, request: IncomingMessage) => void;

let server: HttpServer;
let url: string;
let client: Client;
let respond: Respond;
const requests: IncomingMessage[] = [];

beforeEach(async () => {
  requests.length = 0;
  server = createServer((request, response) => {
    requests.push(request);
    let body = "";
    request.on("data", (text: Buffer) => (body += text.toString()));
    request.on("end", () => {
      respond(response, JSON.parse(body), request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  client = await connect(url, { token: "a-token" });
});
afterEach(async () => {
  await client.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const json =
  (text: string, status = 200): Respond =>
  (response) =>
    response.writeHead(status, { "Content-Type": "application/json" }).end(text);

describe("a POST", () => {
  it("goes to /rpc, with the token, and to a path where one is given", async () => {
    respond = (response, message) => response.end(JSON.stringify({ jsonrpc: "2.0", result: message, id: message.id }));
    expect(await client.f.with({ timeout: 5000 })(1)).toMatchObject({ method: "f", params: [1] });
    expect(requests[0]).toMatchObject({ method: "POST", url: "/rpc" });
    expect(requests[0].headers).toMatchObject({
      authorization: "Bearer a-token",
      "content-type": "application/json",
      accept: "application/json",
    });
    const other = await connect(`${url}/a/path?q=1`);
    await other.g();
    expect(requests[1].url).toBe("/a/path?q=1");
    expect(requests[1].headers.authorization).toBeUndefined();
  });

  it("with a notification ends with its response, and fails where that is a refusal", async () => {
    respond = (response) => response.writeHead(204).end();
    await client.notify("told");
    respond = (response) => response.writeHead(202).end();
    await client.notify("told");
    respond = (response) => response.writeHead(403).end();
    expect((await failure(client.notify("told"))).code).toBe(-32003);
  });

  it("carries a batch, whose calls are answered in any order and have their own outcome", async () => {
    respond = (response, calls: Message[]) => {
      const answers: Message[] = [
        { jsonrpc: "2.0", error: { code: 7, message: "no" }, id: calls[1].id },
        { jsonrpc: "2.0", result: 12345678901234567000, id: calls[0].id },
      ];
      response.end(JSON.stringify(answers).replace("12345678901234567000", "12345678901234567890"));
    };
    const [first, second] = await client.batch((b) =>
      Promise.allSettled([b.one.with({ bigint: true })(), b.two(), b.notify("three")]),
    );
    expect(first).toEqual({ status: "fulfilled", value: 12345678901234567890n });
    expect(second).toMatchObject({ status: "rejected", reason: { code: 7 } });
  });

  it("whose only call is cancelled ends; one with others goes on", async () => {
    const arrived = deferred<ServerResponse>();
    respond = (response) => {
      arrived.resolve(response);
    };
    const stop = new AbortController();
    const cancelled = failure(client.f.with({ signal: stop.signal })());
    const response = await arrived.promise;
    const closed = new Promise((resolve) => response.once("close", resolve));
    stop.abort();
    expect((await cancelled).code).toBe(-32800);
    await closed;

    const answer = deferred<() => void>();
    respond = (response, calls: Message[]) => {
      answer.resolve(() => response.end(JSON.stringify([{ jsonrpc: "2.0", result: 2, id: calls[1].id }])));
    };
    const stopOne = new AbortController();
    const both = client.batch((b) => Promise.allSettled([b.one.with({ signal: stopOne.signal })(), b.two()]));
    const finish = await answer.promise;
    stopOne.abort();
    finish();
    expect(await both).toMatchObject([
      { status: "rejected", reason: { code: -32800 } },
      { status: "fulfilled", value: 2 },
    ]);
  });
});

describe("a response", () => {
  it.each([
    [400, -32001, "no"],
    [401, -32004, "no"],
    [403, -32003, "no"],
    [404, -32001, "no"],
    [408, -32002, "no"],
    [413, -32006, "no"],
    [429, -32005, "no"],
    [500, -32001, "maybe"],
    [501, -32001, "no"],
    [502, -32001, "maybe"],
    [503, -32005, "maybe"],
    [504, -32002, "maybe"],
    [505, -32001, "no"],
  ])("of status %d without JSON-RPC is %d, delivered %s", async (status, code, delivered) => {
    for (const body of ["", "<html>No</html>", "{}"]) {
      respond = json(body, status);
      const error = await failure(client.f());
      expect(error).toMatchObject({ code, delivered });
      expect(error.message).toContain(String(status));
    }
  });

  it("of any status with an error of JSON-RPC is that error, without an id for all calls", async () => {
    respond = json('{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}', 400);
    expect(await failure(client.f())).toMatchObject({ code: -32700, message: "Parse error" });
    const both = await client.batch((b) => Promise.allSettled([b.one(), b.two()]));
    expect(both.map((outcome) => (outcome as PromiseRejectedResult).reason.code)).toEqual([-32700, -32700]);
  });

  it("that redirects is not followed, so that no token goes elsewhere", async () => {
    respond = (response) => response.writeHead(307, { Location: "http://127.0.0.1:1/other" }).end();
    const error = await failure(client.f());
    expect(error).toMatchObject({ code: -32001, delivered: "no" });
    expect(requests.length).toBe(1);
  });

  it("that is no JSON-RPC, answers another call, or breaks off is -32001", async () => {
    for (const text of ["", "no JSON", "5", "{}", '{"jsonrpc":"2.0","result":1,"id":"x"}']) {
      respond = json(text);
      expect(await failure(client.f()), text).toMatchObject({ code: -32001, delivered: "maybe" });
    }
    respond = (response) => {
      response.writeHead(200, { "Content-Length": "100" }).write("{");
      response.socket?.resetAndDestroy();
    };
    expect(await failure(client.f())).toMatchObject({ code: -32001, delivered: "maybe" });
  });

  it("that refuses a call undelivered has it made once more", async () => {
    const refusal = '"error":{"code":-32009,"message":"Draining","data":{"origin":"local","delivered":"no"}}';
    respond = (response, message) => {
      const answer = requests.length === 1 ? refusal : '"result":"done"';
      response
        .writeHead(requests.length === 1 ? 503 : 200)
        .end(`{"jsonrpc":"2.0",${answer},"id":${String(message.id)}}`);
    };
    expect(await client.f()).toBe("done");
    expect(requests.length).toBe(2);
    respond = (response, message) =>
      response.writeHead(503).end(`{"jsonrpc":"2.0",${refusal},"id":${String(message.id)}}`);
    expect(await failure(client.f())).toMatchObject({ code: -32009 });
    expect(requests.length).toBe(4);
  });
});

describe("a stream", () => {
  const events = (texts: string[]): string => texts.map((text) => `data: ${text}\n\n`).join("");
  const item = (id: number, seq: number, value: unknown): string =>
    JSON.stringify({ jsonrpc: "2.0", method: "rpc.item", params: { id, seq, value } });

  it("comes as server-sent events where the server sends such, item by item", async () => {
    const more = deferred();
    respond = (response, message, request) => {
      expect(request.headers.accept).toContain("text/event-stream");
      expect(message.stream).toBeUndefined(); // nobody could give more credit
      response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
      response.write(`: hello\nretry: 5\n\n${events([item(message.id, 0, "é")])}`);
      void more.promise.then(() => {
        response.end(
          events([item(message.id, 1, 2), JSON.stringify({ jsonrpc: "2.0", result: null, id: message.id })]),
        );
      });
    };
    const stream = client.numbers.stream();
    expect(await stream.next()).toEqual({ done: false, value: "é" });
    more.resolve();
    expect(await stream.next()).toEqual({ done: false, value: 2 });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
  });

  it("is read as fast as its items are taken, and loses none", async () => {
    const total = 5000;
    let read = 0;
    vi.stubGlobal("fetch", (_url: string, request: { body: string }) => {
      const { id } = JSON.parse(request.body);
      const end = JSON.stringify({ jsonrpc: "2.0", result: null, id });
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode(events([read < total ? item(id, read, read) : end])));
          if (read++ === total) controller.close();
        },
      });
      return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream" } }));
    });
    try {
      const stream = client.numbers.stream();
      await stream.next();
      // All of it could be read by now: nothing has to be waited for.
      await new Promise((resolve) => setImmediate(resolve));
      expect(read).toBeLessThan(100);
      let count = 1;
      for await (const value of stream) expect(value).toBe(count++);
      expect(count).toBe(total);
    } finally {
      vi.unstubAllGlobals();
    }
  });

  it("that breaks off ends with an error, and one that is left ends its request", async () => {
    const closed = deferred();
    respond = (response, message) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(events([item(message.id, 0, 0)]));
      response.on("close", () => {
        closed.resolve();
      });
      if (message.method === "broken") setTimeout(() => response.socket?.resetAndDestroy(), 20);
    };
    const broken = client.broken.stream();
    await broken.next();
    expect((await failure(broken.next())).code).toBe(-32001);
    for await (const value of client.left.stream()) {
      expect(value).toBe(0);
      break;
    }
    await closed.promise;
  });

  it("of server-sent events is read the same wherever it is cut", async () => {
    // HTML, 9.2.6: three ends of a line, comments, fields without a value, several lines of data.
    const text =
      'data: {"a":\r\ndata:1}\r\n\r\n:c\nid: 5\nevent: x\ndata: é\n\ndata\r\r\rdata:last\n\ndata: unfinished\n';
    const bytes = new TextEncoder().encode(text);
    for (let cut = 0; cut <= bytes.length; cut++) {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(bytes.slice(0, cut));
          controller.enqueue(bytes.slice(cut));
          controller.close();
        },
      });
      const data: string[] = [];
      for await (const event of eventData(body)) data.push(event);
      expect(data, `cut at ${String(cut)}`).toEqual(['{"a":\n1}', "é", "", "last"]);
    }
  });
});
