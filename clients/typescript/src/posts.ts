// Posts: a server's HTTP endpoint. Each call, batch or notification is the body of a POST and stands alone, so nothing
// can come from the server but answers. The items of a stream come as server-sent events where the server sends such.
import { type Call, type Channel, messageOf } from "./call.js";
import { eventData } from "./event_stream.js";
import { exactView } from "./json.js";
import { retryPause } from "./retry.js";
import { closed, type Delivered, ErrorCode, localError, lost, member, readError, RpcError } from "./rpc_error.js";
import { unreachable } from "./unreachable.js";

export interface PostOptions {
  token: string | undefined;
}

/** One request under way. */
interface Post {
  readonly waiting: Set<Call>;
  readonly abort: AbortController;
}

export class Posts implements Channel {
  readonly #url: string;
  readonly #options: PostOptions;
  readonly #posts = new Map<Call, Post>();
  readonly #retries = new Map<Call, ReturnType<typeof setTimeout>>();
  #closed = false;

  constructor(url: string, options: PostOptions) {
    const endpoint = new URL(url);
    if (endpoint.pathname === "/") endpoint.pathname = "/rpc";
    this.#url = endpoint.href;
    this.#options = options;
  }

  send(calls: readonly Call[], batch: boolean): void {
    if (this.#closed) this.#failAll(calls, closed());
    else void this.#post(calls, batch);
  }

  /** What nobody waits for any more is cancelled by closing its connection. */
  abandon(call: Call): void {
    clearTimeout(this.#retries.get(call));
    this.#retries.delete(call);
    const post = this.#posts.get(call);
    if (!post) return;
    this.#posts.delete(call);
    post.waiting.delete(call);
    if (post.waiting.size === 0) post.abort.abort();
  }

  close(): Promise<void> {
    this.#closed = true;
    for (const call of [...this.#posts.keys(), ...this.#retries.keys()]) {
      call.giveUp(closed(call.delivered));
    }
    return Promise.resolve();
  }

  async #post(calls: readonly Call[], batch: boolean): Promise<void> {
    const post: Post = { waiting: new Set(calls), abort: new AbortController() };
    for (const call of calls) {
      call.sent = true;
      this.#posts.set(call, post);
    }
    const streams = calls.some((call) => call.sink);
    const headers: Record<string, string> = {
      "Content-Type": "application/json",
      Accept: streams ? "text/event-stream, application/json" : "application/json",
    };
    const { token } = this.#options;
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers,
        body: messageOf(calls, batch, false),
        // It might carry the token elsewhere.
        redirect: "manual",
        signal: post.abort.signal,
      });
      await this.#read(response, post);
    } catch (error) {
      this.#failAll(post.waiting, error instanceof RpcError ? error : unreachable(this.#url, error, "maybe"));
    }
  }

  async #read(response: Response, post: Post): Promise<void> {
    if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
      const target = response.headers.get("location");
      const where = target === null ? "elsewhere" : `to ${target}`;
      throw lost(`the server redirects ${where}; calls do not follow`, "no");
    }
    if (response.body && response.headers.get("content-type")?.startsWith("text/event-stream")) {
      for await (const text of eventData(response.body)) {
        this.#message(text, post);
        if (post.waiting.size === 0) break;
        for (const call of post.waiting) await call.sink?.room();
      }
    } else {
      const text = await response.text();
      // A notification has no answer.
      for (const call of post.waiting)
        if (call.id === undefined && response.ok) this.#end(call, post).succeed(undefined);
      if (text !== "" && !this.#message(text, post)) throw refusal(response);
    }
    if (post.waiting.size > 0) throw refusal(response);
  }

  // Whether it was one of JSON-RPC.
  #message(text: string, post: Post): boolean {
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      return false;
    }
    const exactly = exactView(text, message);
    if (!Array.isArray(message)) return this.#part(message, post, exactly);
    return message.map((part, at) => this.#part(part, post, () => (exactly() as unknown[])[at])).some(Boolean);
  }

  #part(part: unknown, post: Post, exactly: () => unknown): boolean {
    if (member(part, "jsonrpc") !== "2.0") return false;
    if (member(part, "method") === "rpc.item") {
      const params = member(part, "params");
      const call = [...post.waiting].find(({ id }) => id === member(params, "id"));
      const from = call?.exact ? member(exactly(), "params") : params;
      call?.sink?.item(member(params, "seq"), member(from, "value"));
      return true;
    }
    const id = member(part, "id");
    const failed = member(part, "error") !== undefined;
    // Without an id it is about all of them.
    for (const call of post.waiting) {
      if (call.id !== id && !(failed && id === null)) continue;
      this.#end(call, post);
      const from = call.exact ? exactly() : part;
      const error = failed && readError(member(from, "error"));
      if (!error) call.succeed(member(from, "result"));
      else if (!this.#retry(call, error)) call.fail(error);
    }
    return true;
  }

  #retry(call: Call, error: RpcError): boolean {
    const pause = retryPause(call, error);
    if (pause === undefined) return false;
    call.retried = true;
    call.sent = false;
    this.#retries.set(
      call,
      setTimeout(() => {
        this.#retries.delete(call);
        void this.#post([call], false);
      }, pause),
    );
    return true;
  }

  #end(call: Call, post: Post): Call {
    post.waiting.delete(call);
    this.#posts.delete(call);
    return call;
  }

  #failAll(calls: Iterable<Call>, error: RpcError): void {
    for (const call of calls) {
      this.#posts.delete(call);
      call.fail(error);
    }
  }
}

const codes: Record<number, number> = {
  401: ErrorCode.unauthenticated,
  403: ErrorCode.forbidden,
  408: ErrorCode.timeout,
  413: ErrorCode.tooLarge,
  429: ErrorCode.limitExceeded,
  503: ErrorCode.limitExceeded,
  504: ErrorCode.timeout,
};

// Of a server that has answered in HTTP's words alone, or not to all.
function refusal(response: Response): RpcError {
  const { status, statusText, ok } = response;
  if (ok) return lost("the server's response is no JSON-RPC", "maybe");
  const delivered: Delivered = status < 500 || status === 501 || status === 505 ? "no" : "maybe";
  const name = statusText && ` (${statusText})`;
  const message = `the server answered with HTTP status ${String(status)}${name}`;
  return localError(codes[status] ?? ErrorCode.providerLost, message, delivered);
}
