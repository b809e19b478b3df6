// How much work it is to read server-sent events that come in pieces.
import { expect, it } from "vitest";
import { eventData } from "../src/event_stream.js";

/** Characters of the strings whose methods were called. */
async function counted(act: () => Promise<void>): Promise<number> {
  let characters = 0;
  const restore: (() => void)[] = [];
  const watch = (name: string): void => {
    const whole = Object.getOwnPropertyDescriptor(String.prototype, name) ?? {};
    const original = whole.value as (...given: unknown[]) => unknown;
    Object.defineProperty(String.prototype, name, {
      ...whole,
      value(this: unknown, ...given: unknown[]) {
        characters += String(this).length;
        return original.apply(this, given);
      },
    });
    restore.push(() => Object.defineProperty(String.prototype, name, whole));
  };
  for (const name of ["split", "slice", "indexOf", "replace", "match", "search", "substring"]) {
    watch(name);
  }
  try {
    await act();
  } finally {
    for (const undo of restore) undo();
  }
  return characters;
}

function inPieces(bytes: Uint8Array, size: number): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(bytes.subarray(at, (at += size)));
      else controller.close();
    },
  });
}

it.each([
  ["a byte at a time", 16 << 10, 1],
  ["of 4 MiB by KiB", 4 << 20, 1 << 10],
  ["of 4 MiB at once", 4 << 20, 8 << 20],
])("an event %s is looked at a few times, not once for each piece", async (_what, length, piece) => {
  const text = "x".repeat(length);
  const bytes = new TextEncoder().encode(`data: ${text}\n\ndata: next\n\n`);
  const data: string[] = [];
  const characters = await counted(async () => {
    for await (const event of eventData(inPieces(bytes, piece))) data.push(event);
  });
  expect(data.map(({ length }) => length)).toEqual([length, 4]);
  expect(data[0] === text).toBe(true);
  expect(characters).toBeGreaterThan(bytes.length);
  expect(characters).toBeLessThan(8 * bytes.length + 1000);
});
