// Link: one WebSocket to a server, from its opening to its end. It sends calls, matches responses and items to them by
// id, and hands requests and notifications of the server on. It does not reconnect: a Session does.
import { type Call, type Channel, messageOf } from "./call.js";
import { exactView } from "./json.js";
import { ErrorCode, localError, member, readError, type RpcError } from "./rpc_error.js";
import { openSocket, type SocketOptions } from "./socket.js";

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

  readonly #socket: WebSocket;
  readonly #keeper: LinkKeeper;
  readonly #exact: boolean;
  readonly #pending = new Map<unknown, Call>();
  #complaint: RpcError | undefined;
  #over = false;

  private constructor(url: string, socket: WebSocket, keeper: LinkKeeper, exact: boolean) {
    this.url = url;
    this.#socket = socket;
    this.#keeper = keeper;
    this.#exact = exact;
    socket.onmessage = (event: MessageEvent): void => {
      if (typeof event.data === "string") this.#receive(event.data);
    };
    socket.onerror = null;
    socket.onclose = (event: CloseEvent): void => {
      const code = `code ${String(event.code)}`;
      const why = event.reason === "" ? (this.#complaint?.message ?? code) : event.reason;
      this.#lose(`the connection to ${url} has ended: ${why}`);
    };
  }

  /** Rejects with -32001 when there is no server, or it takes no WebSocket. */
  static async open(url: string, options: SocketOptions & { bigint: boolean }, keeper: LinkKeeper): Promise<Link> {
    const socket = await openSocket(url, options);
    return new Link(url, socket, keeper, options.bigint);
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
      const limit = { limit: "max_message_size" };
      for (const call of calls) call.fail(localError(ErrorCode.tooLarge, "Too large", "no", limit));
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
    const socket = this.#socket as WebSocket & { terminate?: () => void };
    const closed = new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        socket.terminate?.();
        resolve();
      }, 1000);
      const done = (): void => {
        clearTimeout(timer);
        resolve();
      };
      socket.onclose = done;
      if (socket.readyState === 3) done();
    });
    socket.close(1000);
    this.#lose(reason);
    return closed;
  }

  #lose(message: string): void {
    if (this.#over) return;
    this.#over = true;
    const cause = this.#complaint && { cause: this.#complaint };
    for (const call of this.#pending.values()) {
      call.fail(localError(ErrorCode.providerLost, message, "maybe", {}, cause));
    }
    this.#pending.clear();
    this.#keeper.lost(this, localError(ErrorCode.providerLost, message, "maybe", {}, cause));
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
    if (failed) {
      const error = readError(member(message, "error"));
      if (!this.#keeper.retries(this, call, error)) call.fail(error);
    } else {
      call.succeed(member(call.exact ? exactly() : message, "result"));
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
