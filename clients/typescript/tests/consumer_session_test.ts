// What a client that has joined a consumer says to its broker, on each connection.
import { describe, expect, it, vi } from "vitest";
import { type Delivery, durable } from "../src/durable.js";
import { type Client, RpcError } from "../src/index.js";
import { deferred } from "./failure.js";
import { greeting, type Peer } from "./scripted_server.js";
import { open, serveEachTest, server } from "./scripted_session.js";

serveEachTest();

const event = (id: string, value: unknown): object => ({ jsonrpc: "2.0", method: "orders.new", params: [value], id });

async function join(client: Client, peer: Peer, handler: (value: unknown, delivery: Delivery) => unknown) {
  const options = { durable: "billing", start: "first", ackWait: 1000, maxDeliver: 3, maxInFlight: 7 } as const;
  const joined = durable(client).subscribe("orders.>", (_topic, value, delivery) => handler(value, delivery), options);
  const request = await peer.got("rpc.subscribe");
  peer.answer(request, { consumer: "billing", position: 0 });
  return joined;
}

describe("a client that has joined a consumer", () => {
  it("joins it on the next connection, and what was at work on the lost one is aborted", async () => {
    const [client, peer] = await open();
    const began = deferred<Delivery>();
    await join(client, peer, (_value, delivery) => {
      began.resolve(delivery);
      return new Promise(() => undefined);
    });
    const wanted = {
      topic: "orders.>",
      durable: "billing",
      start: "first",
      ack_wait_ms: 1000,
      max_deliver: 3,
      max_in_flight: 7,
    };
    expect((await peer.got("rpc.subscribe")).params).toEqual(wanted);
    peer.say(event("billing:1:1", "a"));
    const { seq, delivery, signal } = await began.promise;
    expect([seq, delivery, signal.aborted]).toEqual([1, 1, false]);
    peer.socket.terminate();
    const next = await server.peer();
    await next.greet();
    expect((await next.got("rpc.subscribe")).params).toEqual(wanted);
    expect(signal.reason).toMatchObject({ code: -32001 });
  });

  it("acknowledges with null, whatever its handler returns, and answers with the error that it throws", async () => {
    const log = { warn: vi.fn(), error: vi.fn() };
    const [client, peer] = await open({ log });
    await join(client, peer, (value) => {
      if (value === "ours") throw new RpcError(7, "no", { a: 1 });
      if (value === "theirs") throw new Error("a secret");
      return "x".repeat(2000);
    });
    const answer = async (id: string, value: unknown): Promise<unknown> => {
      const next = peer.next();
      peer.say(event(id, value));
      return next;
    };
    expect(await answer("billing:1:1", "good")).toEqual({ jsonrpc: "2.0", result: null, id: "billing:1:1" });
    const error = { code: 7, message: "no", data: { a: 1 } };
    expect(await answer("billing:2:1", "ours")).toEqual({ jsonrpc: "2.0", error, id: "billing:2:1" });
    expect(log.error).not.toHaveBeenCalled();
    const internal = { code: -32603, message: "Internal error" };
    expect(await answer("billing:3:1", "theirs")).toEqual({ jsonrpc: "2.0", error: internal, id: "billing:3:1" });
    expect(log.error).toHaveBeenCalledTimes(1);
  });

  it("answers with no more than its server takes", async () => {
    const [client, peer] = await open({}, { ...greeting, limits: { max_message_size: 1000 } });
    await join(client, peer, () => {
      throw new RpcError(7, "x".repeat(1000));
    });
    const answer = peer.next();
    peer.say(event("billing:1:1", 1));
    expect(await answer).toMatchObject({ error: { code: -32006 }, id: "billing:1:1" });
  });

  it("leaves it by its name, and hands back what comes meanwhile", async () => {
    const [client, peer] = await open();
    const handler = vi.fn();
    const subscription = await join(client, peer, handler);
    const left = subscription.unsubscribe();
    const request = await peer.got("rpc.unsubscribe");
    expect(request.params).toEqual({ topic: "orders.>", durable: "billing" });
    const answer = peer.next();
    peer.say(event("billing:1:1", 1));
    expect(await answer).toMatchObject({ error: { code: -32800 }, id: "billing:1:1" });
    peer.answer(request, true);
    await left;
    expect(handler).not.toHaveBeenCalled();
  });

  it("leaves a draining server when it has answered the events that it has", async () => {
    const [client, peer, lost] = await open();
    const gate = deferred();
    const began = deferred();
    await join(client, peer, () => {
      began.resolve();
      return gate.promise;
    });
    peer.say(event("billing:1:1", 1));
    await began.promise;
    peer.say({ jsonrpc: "2.0", method: "rpc.draining" });
    peer.say({ jsonrpc: "2.0", method: "rpc.ping", id: 1 });
    await vi.waitFor(() => {
      expect(peer.received.at(-1)).toMatchObject({ result: "pong" });
    });
    gate.resolve();
    await Promise.all([lost, peer.closed]);
    expect(peer.received.at(-1)).toEqual({ jsonrpc: "2.0", result: null, id: "billing:1:1" });
  });

  it("takes what is no event of it as a call", async () => {
    const [client, peer] = await open();
    const handler = vi.fn();
    await join(client, peer, handler);
    for (const id of ["other:1:1", "billing:1", "billing:1:x", 1, ["billing:1:1"]]) {
      const answer = peer.next();
      peer.say({ jsonrpc: "2.0", method: "orders.new", params: [1], id });
      expect(await answer).toMatchObject({ error: { code: -32601 }, id });
    }
    expect(handler).not.toHaveBeenCalled();
  });
});
