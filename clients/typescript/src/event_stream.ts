// The data of server-sent events, one after the other (HTML, section 9.2.6).

/** Yields the data of each event of a response's body. */
export async function* eventData(body: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let line = ""; // what has come of it
  let data: string[] = [];
  let afterReturn = false; // which has ended a line, together with a line feed if one follows
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      let text = decoder.decode(value, { stream: true });
      if (text === "") continue;
      if (afterReturn && text.startsWith("\n")) text = text.slice(1);
      afterReturn = text.endsWith("\r");
      // Only what is new is looked at: a long line comes in many pieces.
      const [more = "", ...lines] = text.split(/\r\n|\n|\r/);
      line += more;
      for (const next of lines) {
        if (line === "") {
          if (data.length > 0) yield data.join("\n");
          data = [];
        } else if (/^data(:|$)/.test(line)) {
          data.push(line.slice(5).replace(/^ /, ""));
        }
        line = next;
      }
    }
  } finally {
    await reader.cancel();
  }
}
