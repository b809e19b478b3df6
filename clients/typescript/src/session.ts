// Session: a client's stay at a server over WebSocket, through as many connections as it takes. On each it says
// `rpc.hello`, with the session of the last one, then what it provides and subscribes to, and only then the calls that
// have waited. A call that may have reached the server is not made again.
import { Call, type Channel, callTimeout, timerMax } from "./call.js";
import type { Declaration } from "./declaration.js";
import { idText } from "./json.js";
import { Link, type LinkKeeper, type Request } from "./link.js";
import type { Log } from "./log.js";
import type { Handler, Provider } from "./provider.js";
import { retryPause } from "./retry.js";
import { closed, ErrorCode, localError, lost, member, RpcError } from "./rpc_error.js";
import { socketClass } from "./socket.js";
import type { Subscriptions } from "./subscriptions.js";

/** News of a client's connection. */
export type ConnectionEvent =
  | { readonly connected: true; readonly url: string }
  | { readonly connected: false; readonly url: string; readonly cause: RpcError };

/** As of `connect`, where those that may be left out are described. */
export interface SessionOptions {
  clientId?: string | undefined;
  token?: string | undefined;
  tokenBy?: "hello" | "subprotocol" | undefined;
  timeout: number;
  bigint: boolean;
  reconnectMin?: number | undefined;
  reconnectMax?: number | undefined;
  log: Log;
  onConnection?: ((event: ConnectionEvent) => void) | undefined;
  onRefused?: ((name: string, error: RpcError) => void) | undefined;
  onLagged?: ((topic: string, dropped: number) => void) | undefined;
}

interface Message {
  calls: readonly Call[];
  batch: boolean;
}

export class Session implements Channel, LinkKeeper {
  /** What serves a request that is no call of a provided method: Consumers. */
  serving: ((request: Request) => Handler | undefined) | undefined;
  readonly #urls: readonly string[];
  readonly #options: SessionOptions;
  readonly #provider: Provider;
  readonly #subscriptions: Subscriptions;
  readonly #declared = new Set<Declaration>();
  /** Messages that wait for a connection, or for room on it; by each call as well. */
  readonly #queue = new Set<Message>();
  readonly #queued = new Map<Call, Message>();
  /** Of refused calls that are queued again after a pause. */
  readonly #pauses = new Map<Call, ReturnType<typeof setTimeout>>();
  readonly #secrets = new Map<string, string>();
  #at = 0; // of #urls: the next to be tried
  #link: Link | undefined;
  /** The next one, until the server has answered its hello. */
  #opening: Link | undefined;
  #ready = false;
  #leaving = false;
  #served = false;
  #failures = 0;
  #connecting = false;
  #closed = false;
  #wake: (() => void) | undefined;
  #heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(urls: readonly string[], options: SessionOptions, provider: Provider, subscriptions: Subscriptions) {
    this.#urls = urls;
    this.#options = options;
    this.#provider = provider;
    this.#subscriptions = subscriptions;
  }

  /** Rejects with the reason where no server can be reached, or none takes this client. */
  async connect(): Promise<void> {
    this.#connecting = true;
    try {
      await this.#tryAll();
    } finally {
      this.#connecting = false;
    }
  }

  send(calls: readonly Call[], batch: boolean): void {
    if (this.#closed) {
      for (const call of calls) call.fail(closed());
      return;
    }
    const message = { calls, batch };
    this.#queue.add(message);
    for (const call of calls) this.#queued.set(call, message);
    this.#flush();
    if (this.#queue.size > 0) this.#reconnect();
  }

  abandon(call: Call): void {
    if (this.#unqueue(call)) return;
    this.#link?.abandon(call);
  }

  /** Sends a notification of wirecall's own on the connection that there is, or not at all. */
  say(text: string): void {
    this.#link?.say(text);
  }

  declare(declaration: Declaration): void {
    if (this.#closed) {
      declaration.refuse(closed());
      return;
    }
    this.#declared.add(declaration);
    if (this.#link && this.#ready && !this.#leaving) this.#tell(this.#link, declaration);
    else this.#reconnect();
  }

  /** Resolves when the broker has taken it back, or knows nothing of it any more. */
  async withdraw(declaration: Declaration): Promise<void> {
    if (!this.#declared.delete(declaration)) return;
    declaration.refuse(localError(ErrorCode.cancelled, "Cancelled", "no")); // unless it was accepted
    if (!this.#link) return;
    const { kind, name, params } = declaration;
    try {
      if (kind === "method") await this.#ask(this.#link, "rpc.unregister", { method: name });
      else await this.#ask(this.#link, "rpc.unsubscribe", { topic: name, durable: member(params, "durable") });
    } catch (error) {
      if (error instanceof RpcError && error.code === ErrorCode.providerLost) return;
      if (declaration.accepted) throw error;
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake?.();
    const ended = (this.#link ?? this.#opening)?.close("the client is closed");
    const error = closed();
    for (const call of [...this.#queued.keys()]) {
      this.#unqueue(call);
      call.fail(error);
    }
    for (const declaration of this.#declared) declaration.refuse(error);
    this.#declared.clear();
    await ended;
  }

  // ---- connecting ----

  // Goes on for as long as there is something to connect for.
  #reconnect(lost = false): void {
    if (this.#connecting || this.#link || !this.#needed()) return;
    this.#connecting = true;
    void (async () => {
      while (this.#needed()) {
        await this.#pause(lost);
        if (!this.#needed()) break;
        try {
          await this.#tryAll();
          break;
        } catch (error) {
          this.#failures++;
          this.#obstructed(error as RpcError);
        }
      }
      this.#connecting = false;
      // What came while the last connection was made and lost again.
      this.#reconnect();
    })();
  }

  #needed(): boolean {
    return !this.#closed && !this.#link && (this.#queue.size > 0 || this.#declared.size > 0);
  }

  // Doubled each time, less a random part of up to half, so that clients who lost one server do not return together.
  #pause(lost: boolean): Promise<void> {
    const { reconnectMin = 50, reconnectMax = 5000 } = this.#options;
    const doubled = Math.min(reconnectMax, reconnectMin * 2 ** Math.max(0, this.#failures - 1));
    const longest = lost || this.#failures > 0 ? doubled : 0;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, longest * (1 - Math.random() / 2));
      this.#wake = (): void => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #obstructed(error: RpcError): void {
    const refused = error.code === ErrorCode.unauthenticated || error.code === ErrorCode.forbidden;
    for (const call of [...this.#queued.keys()]) {
      if (refused) {
        this.#unqueue(call);
        call.fail(error);
      } else {
        call.obstacle = error;
      }
    }
    if (refused) for (const declaration of this.#declared) this.#refused(declaration, error);
  }

  async #tryAll(): Promise<void> {
    let failure = closed();
    for (let tried = 0; tried < this.#urls.length && !this.#closed; tried++) {
      const url = this.#urls[this.#at % this.#urls.length] ?? "";
      try {
        await this.#open(url);
        return;
      } catch (error) {
        failure = error as RpcError;
        this.#at++;
      }
    }
    throw failure;
  }

  async #open(url: string): Promise<void> {
    const { tokenBy, timeout, bigint } = this.#options;
    const token = tokenBy === "subprotocol" ? this.#options.token : undefined;
    const Socket = await socketClass();
    if (this.#closed) throw closed();
    const link = new Link(Socket, url, { token, timeout: Math.min(timeout, callTimeout), bigint }, this);
    this.#opening = link;
    let keepalive: number | undefined;
    try {
      await link.opened;
      keepalive = await this.#greet(link);
      if (link.over) throw lost(`${url} has closed the connection`, "no");
    } catch (error) {
      void link.close("the server has refused this client");
      throw error;
    } finally {
      this.#opening = undefined;
    }
    this.#link = link;
    this.#watch(link, keepalive);
    this.#served = false;
    this.#leaving = false;
    this.#tellAll(link);
    this.#ready = true;
    this.#inform(() => this.#options.onConnection?.({ connected: true, url }));
    this.#flush();
  }

  // The keepalive that the server tells, in ms. One that does not know the method is as good as any other.
  async #greet(link: Link): Promise<number | undefined> {
    const { clientId, token, tokenBy } = this.#options;
    const params: Record<string, unknown> = {};
    if (clientId !== undefined) params.name = clientId;
    if (token !== undefined && tokenBy !== "subprotocol") params.token = token;
    const resume = this.#secrets.get(link.url);
    let greeting: unknown;
    try {
      greeting = await this.#ask(link, "rpc.hello", resume === undefined ? params : { ...params, resume });
    } catch (error) {
      const code = (error as RpcError).code;
      if (code === ErrorCode.methodNotFound) return undefined;
      if (code !== ErrorCode.unauthenticated || resume === undefined) throw error;
      // It has forgotten the session, as one does that was started again.
      this.#secrets.delete(link.url);
      return this.#greet(link);
    }
    const secret = member(greeting, "session");
    if (typeof secret === "string") this.#secrets.set(link.url, secret);
    const limits = member(greeting, "limits");
    link.limits = {
      messageBytes: positive(member(limits, "max_message_size")) ?? Infinity,
      inFlight: positive(member(limits, "in_flight")) ?? 4096,
    };
    return positive(member(greeting, "keepalive"));
  }

  // A silent peer is asked for a sign of life; one that gives none is lost, which no browser would tell.
  #watch(link: Link, keepalive: number | undefined): void {
    if (keepalive === undefined) return;
    const half = Math.min(keepalive / 2, timerMax);
    let asked = false;
    this.#heartbeat = setInterval(() => {
      if (performance.now() - link.heard < half) {
        asked = false;
      } else if (asked) {
        void link.close("the server gives no sign of life");
      } else {
        asked = true;
        this.#ask(link, "rpc.ping").catch(() => undefined);
      }
    }, half);
  }

  // ---- what is provided and subscribed to ----

  #tellAll(link: Link): void {
    const of = (kind: string): Declaration[] => [...this.#declared].filter((declaration) => declaration.kind === kind);
    const methods = of("method");
    const one = (method: Declaration): void => {
      this.#tell(link, method);
    };
    if (methods.length < 2) methods.forEach(one);
    else
      this.#ask(link, "rpc.register", { methods: methods.map((method) => method.params) }).then(
        () => {
          for (const method of methods) method.accept();
        },
        // One by one, so that one refusal does not cost the others. What has no answer is said on the next connection.
        () => {
          if (!link.over) methods.filter((method) => this.#declared.has(method)).forEach(one);
        },
      );
    of("topic").forEach(one);
  }

  #tell(link: Link, declaration: Declaration): void {
    const method = declaration.kind === "method" ? "rpc.register" : "rpc.subscribe";
    this.#ask(link, method, declaration.params).then(
      () => {
        declaration.accept();
      },
      (error: unknown) => {
        // What a lost connection has not answered is said again on the next one, and so is what a server that is about
        // to end has refused.
        if ((error as RpcError).code === ErrorCode.draining) this.#leave(link);
        else if (!link.over && this.#declared.has(declaration)) this.#refused(declaration, error as RpcError);
      },
    );
  }

  #refused(declaration: Declaration, error: RpcError): void {
    // Never accepted, it is given up; else the next connection may have better luck.
    if (!declaration.accepted) this.#declared.delete(declaration);
    declaration.refuse(error);
    const { onRefused, log } = this.#options;
    if (onRefused)
      this.#inform(() => {
        onRefused(declaration.name, error);
      });
    else log.warn(`wirecall: the server refuses ${declaration.name}`, error);
  }

  #ask(link: Link, method: string, params?: object): Promise<unknown> {
    const call = new Call(method, params, { timeout: callTimeout });
    call.retried = true; // it is about this connection, and is not made on another
    call.by(link);
    return call.promise;
  }

  // ---- calls ----

  #flush(): void {
    const link = this.#link;
    if (!link?.open || !this.#ready) return;
    for (const message of this.#queue) {
      if (this.#leaving || (link.pending > 0 && link.pending + message.calls.length > link.limits.inFlight)) return;
      this.#queue.delete(message);
      const calls = message.calls.filter((call) => this.#queued.delete(call));
      link.send(calls, message.batch);
    }
  }

  #unqueue(call: Call): boolean {
    const message = this.#queued.get(call);
    if (!message) return false;
    this.#queued.delete(call);
    clearTimeout(this.#pauses.get(call));
    this.#pauses.delete(call);
    if (!message.calls.some((other) => this.#queued.has(other))) this.#queue.delete(message);
    return true;
  }

  // ---- what the link tells ----

  request(link: Link, request: Request): void {
    const answer = (text: string): void => {
      request.answer(text);
      if (this.#leaving) this.#leave(link);
    };
    const result = (value: string): void => {
      answer(`{"jsonrpc":"2.0","result":${value},"id":${idText(request.id)}}`);
    };
    if (request.method === "rpc.ping") result('"pong"');
    else if (isCancel(request.method)) result(String(this.#provider.cancel(request.params)));
    else this.#provider.request(link, { ...request, answer }, this.serving?.(request));
  }

  notification(link: Link, method: string, params: unknown): void {
    if (isCancel(method)) {
      this.#provider.cancel(params);
    } else if (method === "rpc.credit") {
      this.#provider.credit(params);
    } else if (method === "rpc.draining") {
      this.#leave(link);
    } else if (method === "rpc.lagged") {
      const [topic, dropped] = [member(params, "topic"), member(params, "dropped")];
      const { onLagged, log } = this.#options;
      if (onLagged)
        this.#inform(() => {
          onLagged(String(topic), Number(dropped));
        });
      else log.warn(`wirecall: ${String(dropped)} events of ${String(topic)} were lost: this client reads too slowly`);
    } else if (!this.#subscriptions.dispatch(method, params)) {
      this.#provider.notification(link, method, params);
    }
  }

  retries(link: Link, call: Call, error: RpcError): boolean {
    if (error.code === ErrorCode.draining) this.#leave(link);
    const pause = retryPause(call, error);
    if (pause === undefined) return false;
    call.retried = true;
    call.sent = false;
    call.obstacle = error;
    const message = { calls: [call], batch: false };
    this.#queued.set(call, message);
    const again = setTimeout(() => {
      this.#pauses.delete(call);
      this.#queue.add(message);
      this.#flush();
      this.#reconnect();
    }, pause);
    this.#pauses.set(call, again);
    return true;
  }

  ended(link: Link): void {
    if (link !== this.#link) return;
    this.#served = true;
    this.#flush();
    if (this.#leaving) this.#leave(link);
  }

  lost(link: Link, error: RpcError): void {
    if (link !== this.#link) return;
    this.#link = undefined;
    this.#ready = false;
    clearInterval(this.#heartbeat);
    this.#provider.lost(error);
    // One that closes a connection before it has served a call is not asked again at once.
    this.#failures = this.#served ? 0 : this.#failures + 1;
    if (!this.#served || this.#leaving) this.#at++;
    this.#inform(() => this.#options.onConnection?.({ connected: false, url: link.url, cause: error }));
    this.#reconnect(true);
  }

  // What a function of the program throws is no reason to lose a connection.
  #inform(tell: () => void): void {
    try {
      tell();
    } catch (error) {
      this.#options.log.error("wirecall: a function for news of the connection has failed", error);
    }
  }

  // A draining server gets no further calls, and is left when it has answered those that it has.
  #leave(link: Link): void {
    if (link !== this.#link) return;
    this.#leaving = true;
    if (link.pending === 0 && this.#provider.running === 0) void link.close("the server is draining");
  }
}

function isCancel(method: string): boolean {
  return method === "$/cancelRequest" || method === "rpc.cancel";
}

function positive(value: unknown): number | undefined {
  return typeof value === "number" && value > 0 ? value : undefined;
}
