// JSON text, out and in, with what JavaScript's own JSON does not do: a bigint is written as an integer, and read as one
// where a number would lose digits; bytes are written as docs/wire.md says; NaN, which JSON cannot hold, is refused
// rather than sent as null.

// Of engines that write raw JSON; others take the slower way below.
interface JsonWithRaw {
  rawJSON?: (text: string) => unknown;
}
const rawJson = (JSON as JsonWithRaw).rawJSON?.bind(JSON);

const integer = /^-?\d+$/;

/** What a value cannot be sent for. The program's mistake, not the peer's. */
function refused(what: string): TypeError {
  return new TypeError(`a value cannot be sent: ${what} has no form in JSON`);
}

/** JSON text of a value. TypeError for NaN, infinities and circles. */
export function encode(value: unknown): string {
  for (;;) {
    // Where the engine writes no raw JSON, an integer goes through as a string that begins with the mark, which
    // nothing else may hold.
    const mark = `${String(Math.random())}n`;
    let marked = 0;
    const text = JSON.stringify(value, function (this: unknown, key: string, item: unknown) {
      // What stands there itself: by now toJSON of BigInt.prototype or Buffer.prototype may have made `item` of it.
      const original = (this as Record<string, unknown>)[key];
      if (typeof original === "number" && !Number.isFinite(original)) throw refused(String(original));
      if (typeof original === "bigint") {
        if (rawJson) return rawJson(String(original));
        marked++;
        return mark + String(original);
      }
      if (original instanceof ArrayBuffer) return { $bytes: base64(new Uint8Array(original)) };
      if (ArrayBuffer.isView(original)) {
        return { $bytes: base64(new Uint8Array(original.buffer, original.byteOffset, original.byteLength)) };
      }
      return item;
    }) as string | undefined;
    if (text === undefined) throw refused(typeof value);
    if (text.includes("\\ud")) refuseLoneSurrogates(text);
    if (marked === 0) return text;
    const parts = text.split(mark);
    if (parts.length === marked + 1)
      return text.replace(new RegExp(`"${mark.replace(".", "\\.")}(-?\\d+)"`, "g"), "$1");
  }
}

// Only these are written as an escape that begins with d8 to df; no peer takes them, since they are not UTF-8.
function refuseLoneSurrogates(text: string): void {
  for (const [, unit] of text.matchAll(/\\(?:u(.{4})|.)/g)) {
    if (unit !== undefined && /^d[89a-f]/.test(unit)) throw refused("a string with a lone surrogate");
  }
}

// Strings, to be passed over, and numbers.
const token = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;

/** The value of JSON text; integers that a number cannot hold exactly come as bigint. SyntaxError for no JSON. */
export function decodeExactly(text: string): unknown {
  JSON.parse(text); // from here on it is known to be JSON, and what follows does not check that again
  // Such an integer goes through as a string that begins with the mark, which no peer can guess.
  const mark = `${String(Math.random())}n`;
  const marked = text.replace(token, (found) =>
    integer.test(found) && !Number.isSafeInteger(Number(found)) ? `"${mark}${found}"` : found,
  );
  return JSON.parse(marked, (_key, item: unknown) =>
    typeof item === "string" && item.startsWith(mark) ? BigInt(item.slice(mark.length)) : item,
  );
}

/**
 * The value of a text that has been read, with all digits: on demand, and then once for whoever asks, since few do and
 * few texts have such integers.
 */
export function exactView(text: string, value: unknown): () => unknown {
  let exact: unknown;
  return () => {
    try {
      return (exact ??= /\d{16}/.test(text) ? decodeExactly(text) : value);
    } catch {
      return value; // nested so deep that only the engine's own parser, without a reviver, can read it
    }
  };
}

/** JSON text of an id that a peer has sent, whatever it is. */
export function idText(id: unknown): string {
  return typeof id === "bigint" ? String(id) : JSON.stringify(id);
}

/** RFC 4648 section 4, with padding. */
function base64(bytes: Uint8Array): string {
  return btoa(binary(bytes));
}

/** The same for URLs, section 5, without padding: of a text's UTF-8. */
export function base64url(text: string): string {
  return base64(new TextEncoder().encode(text)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of `{"$bytes": "<base64>"}`; undefined for any other value. */
export function bytesOf(value: unknown): Uint8Array | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const [[name, text] = [], ...others] = Object.entries(value) as [string, unknown][];
  if (name !== "$bytes" || others.length > 0 || typeof text !== "string") return undefined;
  try {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return base64(bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

function binary(bytes: Uint8Array): string {
  let text = "";
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}
