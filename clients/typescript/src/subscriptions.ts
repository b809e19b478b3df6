// Subscriptions: who of this client wants which events. It matches topics and calls handlers; the Session tells the
// broker, once for each topic or pattern, since a broker sends a connection one copy of an event.
import type { Log } from "./log.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a value is of the publisher's making
export type EventHandler<T = any> = (topic: string, value: T) => unknown;

/** Options of a subscription; docs/broker.md has the meaning. */
export interface SubscribeOptions {
  /** Of all subscriptions of one group, in any client, one receives each event. */
  group?: string;
  /** Includes events that this client publishes. */
  echo?: boolean;
  /** Retained events come first, on each connection anew. */
  last?: boolean;
}

export const subscribeOptionNames: readonly string[] = ["group", "echo", "last"];

export interface Subscriber {
  readonly topic: string;
  readonly handler: EventHandler;
}

export class Subscriptions {
  readonly #subscribers = new Set<Subscriber>();
  readonly #log: Log;

  constructor(log: Log) {
    this.#log = log;
  }

  add(subscriber: Subscriber): void {
    this.#subscribers.add(subscriber);
  }

  /** Whether it was there. */
  remove(subscriber: Subscriber): boolean {
    return this.#subscribers.delete(subscriber);
  }

  /** Whether another one wants the same topic. */
  has(topic: string): boolean {
    return [...this.#subscribers].some((other) => other.topic === topic);
  }

  /** Calls whom an event is for, in the order in which they subscribed. Whether there was one. */
  dispatch(topic: string, params: unknown): boolean {
    const words = topic.split(".");
    const wanted = [...this.#subscribers].filter((subscriber) => matches(subscriber.topic.split("."), words));
    const value = unwrapped(params);
    for (const { handler } of wanted) {
      void (async () => {
        try {
          await handler(topic, value);
        } catch (error) {
          this.#log.error(`wirecall: a handler of ${topic} has failed`, error);
        }
      })();
    }
    return wanted.length > 0;
  }
}

// A number, string, boolean or null travels as an array of that one value.
export function unwrapped(params: unknown): unknown {
  if (!Array.isArray(params) || params.length !== 1) return params;
  const only: unknown = params[0];
  return typeof only === "object" && only !== null ? params : only;
}

/** `*` is any word, `>` one or more at the end; as the first word neither is one of wirecall's own. */
export function matches(pattern: readonly string[], topic: readonly string[]): boolean {
  const [first] = pattern;
  if (topic[0] === "rpc" && (first === "*" || first === ">")) return false;
  return (
    pattern.every((word, at) => (word === ">" || word === "*" ? at < topic.length : word === topic[at])) &&
    (pattern.at(-1) === ">" || pattern.length === topic.length)
  );
}
