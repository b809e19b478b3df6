// A scripted server for each test, clients of it, and their peers there.
import { afterEach, beforeEach } from "vitest";
import { type Client, connect, type ConnectionEvent, type ConnectOptions } from "../src/index.js";
import { deferred } from "./failure.js";
import { greeting, type Message, type Peer, ScriptedServer } from "./scripted_server.js";

export let server: ScriptedServer;
/** Clients that are closed when their test ends. */
export const opened: Client[] = [];

/** Gives each test of the file that calls this a server of its own. */
export function serveEachTest(): void {
  beforeEach(() => serveAt());
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((client) => client.close()));
    await server.stop();
  });
}

/** A new server: at a port that the former one has left, or at one that the system chooses. */
export async function serveAt(port = 0): Promise<void> {
  server = await ScriptedServer.start(port);
}

export const quick = { reconnectMin: 1, reconnectMax: 10 };

/** A client, its peer at the server, and when the client has noticed that the connection has ended. */
export async function open(
  options: ConnectOptions = {},
  result: object = greeting,
): Promise<[Client, Peer, Promise<void>]> {
  const lost = deferred();
  const onConnection = (event: ConnectionEvent): void => {
    options.onConnection?.(event);
    if (!event.connected) lost.resolve();
  };
  const connecting = connect(server.url, { ...quick, ...options, onConnection });
  const peer = await server.peer();
  await peer.greet(result);
  const client = await connecting;
  opened.push(client);
  return [client, peer, lost.promise];
}

export const methods = (peer: Peer): string[] => peer.received.map((message: Message) => message.method as string);
