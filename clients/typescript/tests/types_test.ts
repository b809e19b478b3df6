// The types that an interface of the program's own gives to methods. Most of this is shown by tsc, which compiles it.
import { describe, expectTypeOf, it } from "vitest";
import { type Client, connect, type Stream } from "../src/index.js";

interface Api {
  sum(a: number, b: number): number;
  title(): Promise<string>;
  count(n: number): AsyncGenerator<number>;
  list(): string[];
  "gpu.add"(params: { a: number; b: number }): number;
  "gpu.info.name"(): string;
  with_rest(first: string, ...rest: number[]): void;
}

// Never called: it is only compiled.
async function compiled(c: Client<Api>, any: Client): Promise<void> {
  expectTypeOf(c.sum(1, 2)).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.title()).toEqualTypeOf<Promise<string>>();
  expectTypeOf(c.count(3)).toEqualTypeOf<Promise<number[]>>();
  expectTypeOf(c.count.stream(3)).toEqualTypeOf<Stream<number>>();
  expectTypeOf(c.list.stream()).toEqualTypeOf<Stream<string>>();
  expectTypeOf(c["gpu.add"]({ a: 1, b: 2 })).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c["gpu.add"]({ a: 1, b: 2 }, { timeout: 200 })).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.gpu.add({ a: 1, b: 2 })).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.gpu.info.name()).toEqualTypeOf<Promise<string>>();
  expectTypeOf(c.sum.with({ timeout: 5 })(1, 2)).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.with({ timeout: 5 }).sum(1, 2)).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.call("sum", [1, 2])).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.call("gpu.add", { a: 1, b: 2 })).toEqualTypeOf<Promise<number>>();
  expectTypeOf(c.call<string>("other", [])).toEqualTypeOf<Promise<string>>();
  expectTypeOf(c.stream("count", [1])).toEqualTypeOf<Stream<number>>();
  expectTypeOf(c.batch((b) => [b.sum(1, 2), b.title(), 5] as const)).toEqualTypeOf<Promise<[number, string, 5]>>();
  await c.with_rest("a", 1, 2);
  // @ts-expect-error -- a string is no number
  await c.sum(1, "2");
  // @ts-expect-error -- one is missing
  await c.sum(1);
  // @ts-expect-error -- there is no such method
  // eslint-disable-next-line @typescript-eslint/no-unsafe-call -- so it has no type
  await c.smu(1, 2);
  // @ts-expect-error -- nor such a parameter
  await c["gpu.add"]({ a: 1, c: 2 });
  // @ts-expect-error -- nor such an option
  await c["gpu.add"]({ a: 1, b: 2 }, { timout: 200 });
  // @ts-expect-error -- options stand behind params by name alone
  await c.sum(1, 2, { timeout: 200 });

  // Where nothing is said about a server every name is a method.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as it says
  expectTypeOf(any.whatever(1, "x")).toEqualTypeOf<Promise<any>>();
  await any.a.b.c.with({ timeout: 5 })({ x: 1 });
  for await (const value of any.count.stream(10)) console.log(value);

  any.subscribe<number>("news.>", (topic, value) => {
    expectTypeOf(topic).toEqualTypeOf<string>();
    expectTypeOf(value).toEqualTypeOf<number>();
  });
  any.provide("f", function (a: number) {
    expectTypeOf(this.signal).toEqualTypeOf<AbortSignal>();
    return a;
  });
  expectTypeOf(any.provide("f", () => 1).unregister()).toEqualTypeOf<Promise<void>>();
}

describe("types", () => {
  it("connect takes an interface", () => {
    expectTypeOf(connect<Api>).returns.resolves.toEqualTypeOf<Client<Api>>();
    expectTypeOf(compiled).toBeFunction();
  });
});
