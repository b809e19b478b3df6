/** Where what nobody waits for is told: handlers that fail, and what a server refuses after a reconnection. */
export interface Log {
  warn(message: string, ...details: unknown[]): void;
  error(message: string, ...details: unknown[]): void;
}
