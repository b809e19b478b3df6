// A server whose certificate nobody vouches for, and what a client is told of that (docs/typescript.md, "Certificates").
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../src/index.js";
import { unreachable } from "../src/unreachable.js";
import { failure } from "./failure.js";
import { Server } from "./server.js";

let server: Server;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wirecall-"));
  server = await Server.start(["--tls-self-signed"]);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

// The WebSocket that Node 22 has of its own tells no cause.
const tellsCause = { wss: typeof WebSocket === "undefined", https: true };

describe.each(["wss", "https"] as const)("by %s", (scheme) => {
  it("a certificate that is not trusted is named, with what helps, and nothing was delivered", async () => {
    const url = `${scheme}://127.0.0.1:${String(server.port)}`;
    const error = await failure(connect(url).then((client) => client.sum(1)));
    expect(error).toMatchObject({ code: -32001, delivered: "no" });
    expect(error.message).toContain("NODE_EXTRA_CA_CERTS");
    if (!tellsCause[scheme]) return;
    // Between them newer releases of Node give advice of their own.
    expect(error.message).toMatch(
      /self-signed certificate;.* the certificate is refused \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    );
    expect(error.message).not.toContain("start the server");
    expect(error.cause).toBeInstanceOf(Error);
  });

  it("a certificate that Node is told to trust as it starts is accepted", async () => {
    const file = join(folder, "server.pem");
    writeFileSync(file, await certificateOf(server.port));
    const program = `
      const { connect } = await import(${JSON.stringify(fileURLToPath(new URL("../dist/index.js", import.meta.url)))});
      const c = await connect("${scheme}://127.0.0.1:${String(server.port)}");
      console.log(await c.sum(2, 3));
      await c.close();`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: file },
      timeout: 30_000,
    });
    expect(stdout).toBe("5\n");
  });
});

function certificateOf(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      const { raw } = socket.getPeerCertificate();
      socket.destroy();
      resolve(`-----BEGIN CERTIFICATE-----\n${raw.toString("base64")}\n-----END CERTIFICATE-----\n`);
    });
    socket.on("error", reject);
  });
}

describe("the reason that a server is not reached", () => {
  const of = (code: string, url = "wss://example.com"): string =>
    unreachable(url, new TypeError("fetch failed", { cause: Object.assign(new Error("the cause"), { code }) }), "maybe")
      .message;

  // Node's documentation of TLS, "X509 certificate error codes".
  it.each([
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "CERT_HAS_EXPIRED",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "HOSTNAME_MISMATCH",
  ])("is the certificate where its code is %s", (code) => {
    expect(of(code)).toBe(
      `cannot connect to wss://example.com: the cause; the certificate is refused (${code}); ` +
        "trust its certificate, in Node by NODE_EXTRA_CA_CERTS",
    );
  });

  it.each(["ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED", "ECONNREFUSED", "UND_ERR_SOCKET"])(
    "is not where its code is %s",
    (code) => {
      expect(of(code)).toContain("the cause; start the server, check the address, trust its certificate");
      expect(of(code, "ws://example.com")).not.toContain("certificate");
    },
  );

  it("is what there is: a code, or nothing", () => {
    const said = (error: unknown): string => unreachable("ws://a", error, "no").message;
    expect(said(Object.assign(new AggregateError([]), { code: "ECONNREFUSED" }))).toContain("ws://a: ECONNREFUSED; ");
    for (const nothing of [undefined, null, {}, new Error("")]) expect(said(nothing)).toContain("ws://a: no answer; ");
  });
});
