// The data of server-sent events, one after the other (HTML, section 9.2.6).

/** Yields the data of each event of a response's body. */
export async function* eventData(body: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      rest += decoder.decode(value, { stream: true });
      // A carriage return at the end may be the first half of a line's end.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield data.join("\n");
          data = [];
        } else if (/^data(:|$)/.test(line)) {
          data.push(line.slice(5).replace(/^ /, ""));
        }
      }
    }
  } finally {
    await reader.cancel();
  }
}
