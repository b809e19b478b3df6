// Expectations from RFC 8259 and from JavaScript's own JSON, with which what has no large integers is compared.
import { describe, expect, it } from "vitest";
import { base64url, bytesOf, decodeExactly, encode } from "../src/json.js";

const decode = decodeExactly;

describe("reading", () => {
  it("an integer that a number cannot hold is a bigint, and every other number is a number", () => {
    const text =
      "[9007199254740991,9007199254740993,-9007199254740993,18446744073709551615,1e400,1.5,12345678901234567890.5,1e22,-0]";
    const read = decode(text) as unknown[];
    expect(read.slice(0, 4)).toEqual([9007199254740991, 9007199254740993n, -9007199254740993n, 18446744073709551615n]);
    expect(read.slice(4, 8)).toEqual([Infinity, 1.5, Number("12345678901234567890.5"), 1e22]);
    expect(Object.is(read[8], -0)).toBe(true);
  });

  it("digits in strings stay strings, whatever they are escaped with", () => {
    const values = ['"', "\\", '\\"', "12345678901234567890", 'a"12345678901234567890"\\', "\n\u2028😀", '{"a":[1,2'];
    const text = `{${values.map((value, at) => `${JSON.stringify(value + String(at))}:${JSON.stringify(value)}`).join()}}`;
    expect(decode(text)).toEqual(JSON.parse(text));
    expect(decode('"\\u0031\\"12345678901234567890"')).toBe('1"12345678901234567890');
  });

  it("all of JSON is read as JSON.parse reads it", () => {
    for (const text of [
      "null",
      " true ",
      "false",
      '""',
      "[]",
      "{}",
      "[ ]",
      "{ }",
      "0",
      "-1.25e-7",
      '[1,[2,[3,{"a":[{}]}]],"x",null,true,false]',
      ' { "a" : 1 , "b" : [ 1 , 2 ] ,\r\n\t"c":{"d":null} } ',
      '{"a":1,"a":2}',
      '{"":0," ":1}',
    ]) {
      expect(decode(text)).toEqual(JSON.parse(text));
    }
  });

  it("a member __proto__ is a member", () => {
    const read = decode('{"__proto__":{"x":12345678901234567890}}') as object;
    expect(Object.keys(read)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect("x" in read).toBe(false);
  });

  it("what is no JSON is refused", () => {
    for (const text of [
      "",
      "{",
      "[1,]",
      "01",
      "1.",
      "'a'",
      '{"a"}',
      "[1 2]",
      '"\u0001"',
      "nul",
      "12345678901234567890n",
    ]) {
      expect(() => decode(text), text).toThrow(SyntaxError);
    }
  });

  it("random values come back, large integers among them", () => {
    let seed = 20_240_817;
    const random = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    const make = (depth: number): unknown => {
      switch (random(depth > 4 ? 5 : 7)) {
        case 0:
          return BigInt(random(2 ** 31)) * 2n ** 40n + 2n ** 60n;
        case 1:
          return -BigInt(random(2 ** 31)) * 2n ** 40n - 2n ** 60n;
        case 2:
          return random(1000) / 8;
        case 3:
          return ['"', "\\", "12345678901234567890", "é\n", ""][random(5)];
        case 4:
          return [null, true, false][random(3)];
        case 5:
          return Array.from({ length: random(5) }, () => make(depth + 1));
        default:
          return Object.fromEntries(Array.from({ length: random(5) }, (_, at) => [`k"${String(at)}`, make(depth + 1)]));
      }
    };
    for (let round = 0; round < 2000; round++) {
      const value = make(0);
      expect(decode(encode(value))).toEqual(value);
    }
  });
});

describe("writing", () => {
  it("a bigint is an integer, also where BigInt has been given a toJSON", () => {
    expect(encode([1n, { a: -(2n ** 70n) }, "1n"])).toBe('[1,{"a":-1180591620717411303424},"1n"]');
    const prototype = BigInt.prototype as { toJSON?: () => string };
    prototype.toJSON = function (this: bigint): string {
      return String(this);
    };
    try {
      expect(encode({ a: 5n })).toBe('{"a":5}');
    } finally {
      delete prototype.toJSON;
    }
  });

  it("bytes are base64 behind $bytes, and are read from that and nothing that resembles it", () => {
    expect(encode(new Uint8Array([104, 105]))).toBe('{"$bytes":"aGk="}');
    expect(encode(new Uint8Array([1, 104, 105, 2]).subarray(1, 3))).toBe('{"$bytes":"aGk="}');
    expect(encode([new Uint8Array([255, 254]).buffer, Buffer.from("hi")])).toBe(
      '[{"$bytes":"//4="},{"$bytes":"aGk="}]',
    );
    const large = new Uint8Array(100_000).map((_, at) => at * 7);
    expect(bytesOf(JSON.parse(encode(large)))).toEqual(large);
    for (const other of [
      null,
      1,
      "aGk=",
      {},
      { $bytes: 1 },
      { $bytes: "aGk=", x: 1 },
      { $bytes: "%" },
      { $bytes: "aGk" },
      { $bytes: "a Gk=" },
      { a: "aGk=" },
    ]) {
      expect(bytesOf(other)).toBeUndefined();
    }
  });

  it("what JSON cannot hold is a TypeError that names it", () => {
    for (const value of [
      NaN,
      [Infinity],
      { a: -Infinity },
      undefined,
      () => 1,
      "\udc00",
      { "\ud800": 1 },
      "a\ud800b",
    ]) {
      expect(() => encode(value)).toThrow(TypeError);
    }
    const circle: unknown[] = [];
    circle.push(circle);
    expect(() => encode(circle)).toThrow(TypeError);
    expect(encode("\\ud800 \\\\ud800 😀")).toBe(JSON.stringify("\\ud800 \\\\ud800 😀"));
  });

  it("a token is base64url of its UTF-8, without padding", () => {
    // RFC 4648 section 10, and what section 5 changes.
    expect(["", "f", "fo", "foo", "foob"].map(base64url)).toEqual(["", "Zg", "Zm8", "Zm9v", "Zm9vYg"]);
    expect(base64url("~~~???ÿ")).toBe(Buffer.from("~~~???ÿ").toString("base64url"));
  });
});
