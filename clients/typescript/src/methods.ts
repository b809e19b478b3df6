// The methods of a server as those of an object: `client.sum(2, 3)`, `client["gpu.add"]({ a: 1, b: 2 })`, and their
// types, from an interface of the program's own.
import type { CallOptions, Params } from "./call.js";
import { callOptionNames } from "./call.js";
import { checkedOptions } from "./options.js";
import type { Stream } from "./stream.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- any function describes a method
export type AnyFunction = (...params: any[]) => unknown;

/** Where nothing is said about a server: every name is a method that takes and returns anything. */
export interface AnyApi {
  readonly [name: string]: AnyMethod;
}
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- as it says
export type AnyMethod = Method<(...params: any[]) => any> & AnyApi;

type Items<Result> = Result extends AsyncIterable<infer Item> ? Item : never;
/** What a call returns; of a stream the array of its items. */
export type Result<F extends AnyFunction> =
  ReturnType<F> extends AsyncIterable<unknown> ? Items<ReturnType<F>>[] : Awaited<ReturnType<F>>;
/** What a stream yields; of a method with an array as its result that array's elements. */
export type Item<F extends AnyFunction> =
  ReturnType<F> extends AsyncIterable<unknown>
    ? Items<ReturnType<F>>
    : Awaited<ReturnType<F>> extends readonly (infer Element)[]
      ? Element
      : Awaited<ReturnType<F>>;

/** A method that takes one object has its parameters by name. */
type ByName<F extends AnyFunction> =
  Parameters<F> extends [infer Named extends object] ? (Named extends readonly unknown[] ? never : Named) : never;

/** A method of the server. A single plain object is its parameters by name, all else is by position. */
export interface Method<F extends AnyFunction> {
  (...params: Parameters<F>): Promise<Result<F>>;
  /** By name, with options of the call. */
  (params: ByName<F>, options: CallOptions): Promise<Result<F>>;
  /** Its results one by one, as they come. */
  stream(...params: Parameters<F>): Stream<Item<F>>;
  /** By name, with options of the call. */
  stream(params: ByName<F>, options: CallOptions): Stream<Item<F>>;
  /** The same method with options: what it is called with then are parameters, whatever they look like. */
  with(options: CallOptions): Method<F>;
}

type Head<Name> = Name extends `${infer First}.${string}` ? First : Name;
type Below<Api, First extends string> = {
  [Name in keyof Api as Name extends `${First}.${infer Rest}` ? Rest : never]: Api[Name];
};
type Typed<F> = F extends AnyFunction ? Method<F> : unknown;

/** The methods that an interface describes; a dotted name is a path as well: `gpu.add` is `["gpu.add"]`. */
export type Methods<Api> = string extends keyof Api
  ? AnyApi
  : { readonly [Name in keyof Api]: Typed<Api[Name]> } & {
      readonly [First in Head<keyof Api> & string]: (First extends keyof Api ? Typed<Api[First]> : unknown) &
        ([keyof Below<Api, First>] extends [never] ? unknown : Methods<Below<Api, First>>);
    };

/** What the methods of an object end in. */
export interface Caller {
  call(method: string, params: Params | undefined, options: CallOptions): Promise<unknown>;
  stream?(method: string, params: Params | undefined, options: CallOptions): unknown;
}

/** Names that are nobody's method: an object with `then` could not be awaited, one with `toJSON` not be printed. */
function hidden(name: string | symbol): name is symbol {
  return typeof name === "symbol" || name === "then" || name === "toJSON";
}

/** `face` with every other name as a method of the server. */
export function withMethods<Face extends object>(face: Face, caller: Caller, options?: CallOptions): Face {
  return new Proxy(Object.freeze(face), {
    get: (target, name) => {
      if (Object.hasOwn(target, name)) return (target as Record<string | symbol, unknown>)[name];
      return hidden(name) ? undefined : methodAt(name, caller, options);
    },
  });
}

function methodAt(path: string, caller: Caller, options?: CallOptions): unknown {
  return new Proxy(() => undefined, {
    // Whatever is wrong with the arguments is the outcome of the call. The promise is the caller's own: a batch that is
    // not sent sees to it that nobody has to catch those of its calls.
    apply: (_target, _this, given: unknown[]) => {
      try {
        return caller.call(path, ...argumentsOf(given, options));
      } catch (error: unknown) {
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- whatever it is
        return Promise.reject(error);
      }
    },
    get: (_target, name) => {
      if (hidden(name)) return undefined;
      if (name === "with") {
        return (more: CallOptions) =>
          methodAt(path, caller, { ...options, ...checkedOptions(more, callOptionNames, "a call") });
      }
      if (name === "stream" && caller.stream) {
        return (...given: unknown[]) => caller.stream?.(path, ...argumentsOf(given, options));
      }
      return methodAt(`${path}.${name}`, caller, options);
    },
  });
}

// One plain object is params by name, and a second behind it options, unless `with` has given these.
function argumentsOf(given: unknown[], options: CallOptions | undefined): [Params | undefined, CallOptions] {
  const [first, second] = given;
  if (given.length === 0) return [undefined, options ?? {}];
  if (isPlainObject(first)) {
    if (given.length === 1) return [first, options ?? {}];
    if (given.length === 2 && !options && isPlainObject(second)) {
      return [first, checkedOptions(second, callOptionNames, "a call", "; two objects by position are .with({})(…)")];
    }
  }
  return [given, options ?? {}];
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Of another realm too, such as a frame's.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
