// A WebSocket server that says what a test makes it say, and shows what the client has sent.
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever JSON holds
export type Message = any;

export const greeting = {
  server: "scripted",
  session: "secret",
  limits: { max_message_size: 1 << 20, in_flight: 100 },
  keepalive: 0,
};

export class Peer {
  readonly received: Message[] = [];
  readonly #waiting: { wanted: (message: Message) => boolean; resolve: (message: Message) => void }[] = [];
  readonly closed: Promise<number>;

  constructor(
    readonly socket: WebSocket,
    readonly protocol: string,
    readonly offered: string | undefined,
  ) {
    this.closed = new Promise((resolve) => socket.on("close", resolve));
    socket.on("message", (data: Buffer) => {
      const message: Message = JSON.parse(data.toString());
      this.received.push(message);
      this.#waiting.splice(0).forEach((waiting) => {
        if (waiting.wanted(message)) waiting.resolve(message);
        else this.#waiting.push(waiting);
      });
    });
  }

  /** What it has received, or will receive. */
  got(method: string): Promise<Message> {
    const wanted = (message: Message): boolean => message.method === method;
    const received = this.received.find(wanted);
    return received ? Promise.resolve(received) : new Promise((resolve) => this.#waiting.push({ wanted, resolve }));
  }

  /** So many of them. */
  async gotAll(method: string, count: number): Promise<Message[]> {
    for (;;) {
      const all = this.received.filter((message: Message) => message.method === method);
      if (all.length >= count) return all;
      await this.next();
    }
  }

  /** The next message. */
  async next(): Promise<Message> {
    return new Promise((resolve) => this.#waiting.push({ wanted: () => true, resolve }));
  }

  say(message: unknown): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  answer(request: Message, result: unknown): void {
    this.say({ jsonrpc: "2.0", result, id: request.id });
  }

  refuse(request: Message, error: object): void {
    this.say({ jsonrpc: "2.0", error, id: request.id });
  }

  /** Answers `rpc.hello`. */
  async greet(result: object = greeting): Promise<Message> {
    const hello = await this.got("rpc.hello");
    this.answer(hello, result);
    return hello;
  }
}

export class ScriptedServer {
  readonly #server: WebSocketServer;
  readonly #peers: Peer[] = [];
  readonly #waiting: ((peer: Peer) => void)[] = [];
  connections = 0;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    server.on("connection", (socket, request) => {
      this.connections++;
      const peer = new Peer(socket, socket.protocol, request.headers["sec-websocket-protocol"]);
      const waiting = this.#waiting.shift();
      if (waiting) waiting(peer);
      else this.#peers.push(peer);
    });
  }

  static start(port = 0): Promise<ScriptedServer> {
    return new Promise((resolve) => {
      const server = new WebSocketServer({
        host: "127.0.0.1",
        port,
        handleProtocols: (offered) => (offered.has("jsonrpc") ? "jsonrpc" : false),
      });
      server.on("listening", () => {
        resolve(new ScriptedServer(server));
      });
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `ws://127.0.0.1:${String(this.port)}`;
  }

  /** The next client that connects. */
  async peer(): Promise<Peer> {
    return this.#peers.shift() ?? new Promise((resolve) => this.#waiting.push(resolve));
  }

  stop(): Promise<void> {
    for (const client of this.#server.clients) client.terminate();
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve();
      });
    });
  }
}
