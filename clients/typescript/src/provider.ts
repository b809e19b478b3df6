// Provider: the methods that this client provides, and the calls of them that are under way. It answers requests, sends
// the items of streams as far as their credit goes, and ends what its caller no longer waits for.
import { timerMax } from "./call.js";
import type { CallContext } from "./call_context.js";
import { encode, idText } from "./json.js";
import { exceeds, type Link, type Request } from "./link.js";
import type { Log } from "./log.js";
import { ErrorCode, localError, member, RpcError, tooLarge } from "./rpc_error.js";

/** Any function. One that is no arrow function has the CallContext as `this`; a generator is a stream. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- what a caller sends is checked by the handler
export type Handler = (this: CallContext, ...params: any[]) => unknown;

/** One of OpenRPC's content descriptors. */
export interface ParamDescriptor {
  name: string;
  required?: boolean;
  summary?: string;
  schema?: object;
}

/** How a method is registered at the broker; docs/broker.md has the meaning and the defaults. */
export interface ProvideOptions {
  /** Selects among several providers: "least_inflight", "round_robin", "random", "hash:<param>", "exclusive", … */
  policy?: string;
  /** Calls that this client has at a time; more wait at the broker. */
  concurrency?: number;
  /** Calls that wait there for it. */
  queue?: number;
  /** A call that a lost provider may have served is retried once, at another. */
  idempotent?: boolean;
  summary?: string;
  /** The names of the handler's parameters: then it takes calls by name as well, as the same arguments. */
  params?: readonly (string | ParamDescriptor)[];
  /** A JSON Schema of the result. */
  result?: object;
  safe?: boolean;
  /** `false`: for the server alone, whose handlers may call their caller; it is not registered at a broker. */
  register?: boolean;
}

export const provideOptionNames: readonly string[] = [
  "policy",
  "concurrency",
  "queue",
  "idempotent",
  "summary",
  "params",
  "result",
  "safe",
  "register",
];

const runningMax = 4096;

interface Method {
  handler: Handler;
  params: readonly ParamDescriptor[] | undefined;
}

export class Provider {
  readonly #methods = new Map<string, Method>();
  /** By their text, since `1` and `"1"` are two ids. */
  readonly #running = new Map<string, RunningCall>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  get running(): number {
    return this.#running.size;
  }

  /** Returns what `rpc.register` says of it. Throws -32007 where the name is taken. */
  add(name: string, handler: Handler, options: ProvideOptions): object {
    if (this.#methods.has(name)) {
      const reason = { reason: `this client provides ${name} already; unregister that first` };
      throw localError(ErrorCode.conflict, "Conflict", "no", reason);
    }
    const params = options.params?.map((param) => (typeof param === "string" ? { name: param, schema: {} } : param));
    this.#methods.set(name, { handler, params });
    return { ...options, register: undefined, method: name, ...(params && { params }) };
  }

  /** Unless another one has taken the name. */
  remove(name: string, handler: Handler): void {
    if (this.#methods.get(name)?.handler === handler) this.#methods.delete(name);
  }

  /** `event` serves it where it is an event of a consumer: then a result that comes late is one all the same. */
  request(link: Link, request: Request, event?: Handler): void {
    const key = idText(request.id);
    const respond = (response: string): void => {
      this.#running.delete(key);
      const text = (of: string): string => `{"jsonrpc":"2.0",${of},"id":${key}}`;
      // The server would end the connection over one that is larger.
      const large = exceeds(text(response), link.limits.messageBytes);
      request.answer(text(large ? `"error":${encode(tooLarge("maybe"))}` : response));
    };
    const fail = (error: RpcError): void => {
      respond(`"error":${encode(error)}`);
    };
    const method = event ? { handler: event, params: undefined } : this.#methodFor(request.method);
    if (!method) {
      fail(new RpcError(ErrorCode.methodNotFound, "Method not found"));
    } else if (!event && this.#running.size >= runningMax) {
      fail(localError(ErrorCode.limitExceeded, "Limit exceeded", "no", { limit: "in_flight" }));
    } else {
      const running = new RunningCall(link, request, respond, this.#log, event !== undefined);
      this.#running.set(key, running);
      void running.run(method.handler, method.params);
    }
  }

  /** Nobody is answered, and nobody hears of a failure but the log. */
  notification(link: Link, name: string, params: unknown): void {
    const method = this.#methodFor(name);
    if (!method) return;
    const request: Request = { id: null, method: name, params, members: {}, inBatch: true, answer: () => undefined };
    void new RunningCall(link, request, () => undefined, this.#log).run(method.handler, method.params);
  }

  /** How many calls it has ended. */
  cancel(params: unknown): number {
    const ids = Array.isArray(params) ? (params as unknown[]) : [member(params, "id")];
    return ids.filter((id) => id !== undefined && this.#running.get(idText(id))?.cancel()).length;
  }

  credit(params: unknown): void {
    const [id, items] = Array.isArray(params) ? (params as unknown[]) : [member(params, "id"), member(params, "n")];
    if (id !== undefined && isCount(items)) this.#running.get(idText(id))?.grant(items);
  }

  /** Their callers can no longer be answered. */
  lost(error: RpcError): void {
    const running = [...this.#running.values()];
    this.#running.clear();
    for (const call of running) call.abort(error);
  }

  // An exact name before a prefix, a longer prefix before a shorter one.
  #methodFor(name: string): Method | undefined {
    for (let at = name.length, known = this.#methods.get(name); ; known = this.#methods.get(`${name.slice(0, at)}.>`)) {
      if (known) return known;
      at = name.lastIndexOf(".", at - 1);
      if (at < 0) return this.#methods.get(">");
    }
  }
}

class RunningCall implements CallContext {
  readonly method: string;
  readonly caller: string | undefined;
  readonly hops: number;

  readonly #link: Link;
  readonly #request: Request;
  readonly #respond: (response: string) => void;
  readonly #log: Log;
  readonly #event: boolean;
  readonly #stop = new AbortController();
  readonly #deadline: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #over = false;
  #credit: number;
  #granted: (() => void) | undefined;

  constructor(link: Link, request: Request, respond: (response: string) => void, log: Log, event = false) {
    const { members } = request;
    this.method = request.method;
    this.#link = link;
    this.#request = request;
    this.#respond = respond;
    this.#log = log;
    this.#event = event;
    const from = member(members, "from");
    this.caller = typeof from === "string" ? from : undefined;
    this.hops = Number(member(members, "hops") ?? 0);
    const stream = member(members, "stream");
    this.#credit = isCount(stream) && !request.inBatch ? stream : -1;
    const timeout = member(members, "timeout_ms");
    this.#deadline = performance.now() + (typeof timeout === "number" ? timeout : Infinity);
    if (typeof timeout === "number" && timeout <= timerMax) {
      this.#timer = setTimeout(() => {
        this.#end(localError(ErrorCode.timeout, "Timeout", "maybe"));
      }, timeout);
    }
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get remaining(): number {
    return this.#deadline - performance.now();
  }

  /** Whether it was still running. */
  cancel(): boolean {
    if (this.#over) return false;
    const error = localError(ErrorCode.cancelled, "Cancelled", "maybe");
    if (this.#event) this.#stop.abort(error);
    else this.#end(error);
    return true;
  }

  grant(items: number): void {
    if (this.#credit < 0) return;
    this.#credit += items;
    this.#granted?.();
  }

  abort(error: RpcError): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#stop.abort(error);
    this.#granted?.();
  }

  async run(handler: Handler, params: readonly ParamDescriptor[] | undefined): Promise<void> {
    try {
      // Called after what has come with it is looked at, a cancel for example.
      await Promise.resolve();
      if (this.#isOver()) return;
      const returned = await handler.apply(this, argumentsOf(this.#request.params, params));
      const items = iterated(returned);
      const result = items ? await this.#stream(items) : returned;
      if (this.#isOver()) return;
      this.#answer(`"result":${result instanceof Raw ? result.text : encode(result ?? null)}`);
    } catch (error) {
      // One that was stopped may fail over that; it has been answered.
      if (!this.#over) this.#fail(error);
    }
  }

  // Item by item where the caller has asked for that, else an array of all. What the generator returns is the result.
  async #stream(items: AsyncIterator<unknown> | Iterator<unknown>): Promise<unknown> {
    const gathered: string[] = [];
    const max = this.#link.limits.messageBytes;
    let size = 0;
    try {
      for (let seq = 0; ; seq++) {
        while (this.#credit === 0 && !this.#isOver()) {
          await new Promise<void>((resolve) => {
            this.#granted = resolve;
          });
        }
        if (this.#isOver()) return undefined;
        const next = await items.next();
        if (this.#isOver()) return undefined;
        if (next.done) {
          return this.#credit < 0 ? new Raw(`[${gathered.join()}]`) : next.value;
        }
        const item = encode(next.value);
        if (this.#credit > 0) {
          this.#credit--;
          const params = `{"id":${idText(this.#request.id)},"seq":${String(seq)},"value":${item}}`;
          const text = `{"jsonrpc":"2.0","method":"rpc.item","params":${params}}`;
          if (exceeds(text, max)) throw tooLarge("maybe");
          this.#link.say(text);
        } else {
          gathered.push(item);
          size += item.length + 1;
          if (size > max) throw tooLarge("maybe");
        }
      }
    } finally {
      // Where it was left before its end its own `finally` runs.
      await items.return?.();
    }
  }

  #fail(error: unknown): void {
    if (error instanceof RpcError) {
      // A handler that has run cannot say that it has not: its caller would call again.
      const { code, message, data } = error;
      const claimed = error.delivered === "no" ? { ...(data as object), delivered: "maybe" } : data;
      try {
        this.#answer(`"error":${encode(claimed === undefined ? { code, message } : { code, message, data: claimed })}`);
        return;
      } catch (unsendable) {
        error = unsendable;
      }
    }
    this.#log.error(`wirecall: a handler of ${this.method} has failed`, error);
    this.#answer(`"error":{"code":${String(ErrorCode.internalError)},"message":"Internal error"}`);
  }

  // A function, since it changes during an await.
  #isOver(): boolean {
    return this.#over;
  }

  #end(error: RpcError): void {
    if (this.#over) return;
    this.#answer(`"error":${encode(error)}`);
    this.abort(error);
  }

  #answer(response: string): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#respond(response);
  }
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

/** JSON text that is written as it is. */
class Raw {
  constructor(readonly text: string) {}
}

// Of a generator, sync or async, or anything async that can be iterated; an array is a value.
function iterated(value: unknown): AsyncIterator<unknown> | Iterator<unknown> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Symbol.asyncIterator in value) return (value as AsyncIterable<unknown>)[Symbol.asyncIterator]();
  return Symbol.iterator in value && "next" in value ? (value as IterableIterator<unknown>) : undefined;
}

// By position as they are. By name one object, or, where the names of the parameters are known, in their order.
function argumentsOf(params: unknown, known: readonly ParamDescriptor[] | undefined): unknown[] {
  const given = params ?? [];
  if (!known) return Array.isArray(given) ? (given as unknown[]) : Object.keys(given).length > 0 ? [given] : [];
  const names = known.map((param) => param.name);
  const values = Array.isArray(given) ? (given as unknown[]) : names.map((name) => member(given, name));
  const extra = Array.isArray(given)
    ? values.findIndex((_, at) => at >= names.length)
    : Object.keys(given).find((name) => !names.includes(name));
  if (extra !== undefined && extra !== -1) {
    throw invalidParam(extra, "nothing", encode(member(given, String(extra))));
  }
  const missing = known.findIndex((param, at) => param.required && values[at] === undefined);
  if (missing >= 0) throw invalidParam(names[missing] ?? missing, "a value", "nothing");
  return values;
}

function invalidParam(at: string | number, expected: string, got: string): RpcError {
  return new RpcError(ErrorCode.invalidParams, "Invalid params", { loc: [at], expected, got: got.slice(0, 100) });
}
