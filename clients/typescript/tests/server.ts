// The server that the tests are run against: the command, with its demo methods, as a broker, on a port of its own.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const command = process.env.WIRECALL ?? fileURLToPath(new URL("../../../build/wirecall", import.meta.url));
if (!existsSync(command)) throw new Error(`there is no ${command}: build it with make build, or name it by $WIRECALL`);

export class Server {
  private constructor(
    readonly process: ChildProcess,
    readonly port: number,
  ) {}

  /** Port 0 is one that the system chooses. */
  static async start(options: string[] = [], port = 0): Promise<Server> {
    const child = spawn(command, ["serve", "--demo", "--port", String(port), ...options], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return new Promise((resolve, reject) => {
      let said = "";
      child.stderr.setEncoding("utf8");
      child.stderr.on("data", (text: string) => {
        said += text;
        const found = /tcp:\/\/127\.0\.0\.1:(\d+)/.exec(said);
        if (found) resolve(new Server(child, Number(found[1])));
      });
      child.on("error", reject);
      child.on("exit", () => {
        reject(new Error(`the server has ended:\n${said}`));
      });
    });
  }

  get ws(): string {
    return `ws://127.0.0.1:${String(this.port)}`;
  }

  get http(): string {
    return `http://127.0.0.1:${String(this.port)}`;
  }

  /** Ends it at once, as a crash would, or so that it drains. */
  async stop(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
  }
}
