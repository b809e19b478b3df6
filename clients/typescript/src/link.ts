// Link: one WebSocket to a server, from its making to its end. It sends calls, matches responses and items to them by
// id, and hands requests and notifications of the server on. It does not reconnect: a Session does.
import { type Call, type Channel, messageOf } from "./call.js";
import { base64url, exactView } from "./json.js";
import { lost, member, readError, type RpcError, tooLarge } from "./rpc_error.js";
import type { SocketClass } from "./socket.js";
import { unreachable } from "./unreachable.js";

export interface LinkOptions {
  /** Shown in the handshake, as a subprotocol: a browser can set no header. */
  token: string | undefined;
  /** Milliseconds until it has to be open. */
  timeout: number;
  /** Params are received with all digits of their integers. */
  bigint: boolean;
}

/** A request of the server, to be answered once, by `answer`, with the text of a response. */
export interface Request {
  readonly id: unknown;
  readonly method: string;
  readonly params: unknown;
  readonly members: object;
  /** In a batch there is one response and nothing before it. */
  readonly inBatch: boolean;
  answer(text: string): void;
}

/** Whoever keeps the link. */
export interface LinkKeeper {
  request(link: Link, request: Request): void;
  notification(link: Link, method: string, params: unknown): void;
  /** Whether a call that was answered so is made again, by the keeper. */
  retries(link: Link, call: Call, error: RpcError): boolean;
  /** A call is over: there may be room for another. */
  ended(link: Link): void;
  lost(link: Link, error: RpcError): void;
}

export interface ServerLimits {
  messageBytes: number;
  inFlight: number;
}

export class Link implements Channel {
  readonly url: string;
  /** The server's, once it has told them. */
  limits: ServerLimits = { messageBytes: Infinity, inFlight: 4096 };
  /** performance.now() of the last message. */
  heard = performance.now();

  /** Rejects with -32001, delivered "no", where there is no server in time, or it takes no WebSocket. */
  readonly opened: Promise<void>;

  readonly #socket: WebSocket;
  readonly #keeper: LinkKeeper;
  readonly #exact: boolean;
  readonly #pending = new Map<unknown, Call>();
  #refuse!: (error: RpcError) => void;
  #complaint: RpcError | undefined;
  #over = false;
  #closed: Promise<void> | undefined;

  /** SyntaxError for what is no URL. */
  constructor(Socket: SocketClass, url: string, options: LinkOptions, keeper: LinkKeeper) {
    const { token, timeout, bigint } = options;
    const socket = new Socket(url, token === undefined ? [] : ["jsonrpc", `bearer.${base64url(token)}`]);
    this.url = url;
    this.#socket = socket;
    this.#keeper = keeper;
    this.#exact = bigint;
    this.opened = new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        fail({ message: "no answer in time" });
      }, timeout);
      const fail = (error: unknown): void => {
        this.#lose(unreachable(url, error, "no"));
      };
      this.#refuse = (error): void => {
        clearTimeout(timer);
        reject(error);
      };
      socket.onopen = (): void => {
        clearTimeout(timer);
        resolve();
        // Of `ws` somebody has to listen.
        socket.onerror = (event): void => {
          const { message } = event as ErrorEvent;
          this.#complaint ??= lost(message, "maybe");
        };
        socket.onclose = (event: CloseEvent): void => {
          const why = event.reason || (this.#complaint?.message ?? `code ${String(event.code)}`);
          this.#lose(this.#ended(`the connection to ${url} has ended: ${why}`));
        };
      };
      // A browser says nothing more, on purpose. Node's own does not close one that could not be opened.
      socket.onerror = (event): void => {
        fail((event as { error?: unknown }).error);
      };
      socket.onclose = (): void => {
        fail(undefined);
      };
    });
    socket.onmessage = (event: MessageEvent): void => {
      if (typeof event.data === "string") this.#receive(event.data);
    };
  }

  get pending(): number {
    return this.#pending.size;
  }

  get over(): boolean {
    return this.#over;
  }

  /** Whether what is sent now may arrive: a connection that is closing takes nothing more. */
  get open(): boolean {
    return this.#socket.readyState === 1;
  }

  /** Sends the calls as one message, whatever limits there are. */
  send(calls: readonly Call[], batch: boolean): void {
    const text = messageOf(calls, batch);
    if (exceeds(text, this.limits.messageBytes)) {
      for (const call of calls) call.fail(tooLarge("no"));
      return;
    }
    for (const call of calls) {
      call.sent = true;
      if (call.id !== undefined) this.#pending.set(call.id, call);
    }
    this.#socket.send(text);
    for (const call of calls) if (call.id === undefined) call.succeed(undefined);
  }

  /** Sends a message of which nobody waits for an answer. */
  say(text: string): void {
    if (!this.#over && this.open) this.#socket.send(text);
  }

  /** The caller no longer waits. */
  abandon(call: Call): void {
    if (!this.#pending.delete(call.id)) return;
    this.say(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":${String(call.id)}}}`);
    this.#keeper.ended(this);
  }

  /** Resolves when the connection is closed, by the peer too or after a second; what is pending ends now. */
  close(reason: string): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      const socket = this.#socket as WebSocket & { terminate?: () => void };
      const timer = setTimeout(() => {
        socket.terminate?.();
        resolve();
      }, 1000);
      const done = (): void => {
        clearTimeout(timer);
        resolve();
      };
      socket.onclose = done;
      // One that is not open yet is given up at once.
      if (socket.readyState === 0 || socket.readyState === 3) done();
      socket.close(1000);
    });
    this.#lose(this.#ended(reason));
    return this.#closed;
  }

  #ended(message: string): RpcError {
    return lost(message, "maybe", this.#complaint && { cause: this.#complaint });
  }

  #lose(error: RpcError): void {
    if (this.#over) return;
    this.#over = true;
    this.#refuse(error);
    for (const call of this.#pending.values()) call.fail(error);
    this.#pending.clear();
    this.#keeper.lost(this, error);
  }

  // ---- what comes ----

  #receive(text: string): void {
    if (this.#over) return;
    this.heard = performance.now();
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      return; // no message, and nothing that an answer could be sent to
    }
    const exactly = exactView(text, message);
    if (!Array.isArray(message)) {
      this.#handle(message, exactly);
      return;
    }
    const answers: string[] = [];
    let due = message.filter((element) => isRequest(element)).length;
    const answer = (reply: string): void => {
      answers.push(reply);
      if (--due === 0) this.say(`[${answers.join()}]`);
    };
    message.forEach((element: unknown, at) => {
      this.#handle(element, () => (exactly() as unknown[])[at], answer);
    });
  }

  #handle(message: unknown, exactly: () => unknown, answerOfBatch?: (reply: string) => void): void {
    if (typeof message !== "object" || message === null) return;
    const method = member(message, "method");
    if (typeof method !== "string") {
      this.#response(message, exactly);
      return;
    }
    let id = member(message, "id");
    if (id === undefined && method === "rpc.item") {
      this.#item(member(message, "params"), exactly);
      return;
    }
    const params = member(this.#exact ? exactly() : message, "params");
    if (id === undefined) {
      this.#keeper.notification(this, method, params);
      return;
    }
    // A broker's ids may have 63 bits.
    if (typeof id === "number" && !Number.isSafeInteger(id)) id = member(exactly(), "id");
    const answer =
      answerOfBatch ??
      ((text: string): void => {
        this.say(text);
      });
    const inBatch = answerOfBatch !== undefined;
    this.#keeper.request(this, { id, method, params, members: message, inBatch, answer });
  }

  #response(message: object, exactly: () => unknown): void {
    const id = member(message, "id");
    const call = this.#pending.get(id);
    const failed = Object.hasOwn(message, "error");
    if (!call) {
      // Without an id it is about a message that the server could not read: then it may close the connection.
      if (failed && id === null) this.#complaint = readError(member(message, "error"));
      return;
    }
    this.#pending.delete(id);
    const from = call.exact ? exactly() : message;
    if (failed) {
      const error = readError(member(from, "error"));
      if (!this.#keeper.retries(this, call, error)) call.fail(error);
    } else {
      call.succeed(member(from, "result"));
    }
    this.#keeper.ended(this);
  }

  #item(params: unknown, exactly: () => unknown): void {
    const call = this.#pending.get(member(params, "id"));
    if (!call?.sink) return;
    const from = call.exact ? member(exactly(), "params") : params;
    call.sink.item(member(params, "seq"), member(from, "value"));
  }
}

function isRequest(element: unknown): boolean {
  return typeof member(element, "method") === "string" && member(element, "id") !== undefined;
}

/** Whether a text has more bytes than that. */
export function exceeds(text: string, bytes: number): boolean {
  return text.length > bytes || (text.length * 3 > bytes && new TextEncoder().encode(text).length > bytes);
}
