// The timers of setTimeout that are still to come, so that a test can say that a client leaves none.
import { vi } from "vitest";

export interface Timers {
  /** In ms, as they were asked for: those of a second or more. Sockets have shorter ones. */
  left(): number[];
  restore(): void;
}

/** From now on. */
export function watchTimers(): Timers {
  const running = new Map<unknown, number>();
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  vi.stubGlobal("setTimeout", (act: (...given: unknown[]) => void, ms = 0, ...given: unknown[]) => {
    const timer = set(() => {
      running.delete(timer);
      act(...given);
    }, ms);
    running.set(timer, ms);
    return timer;
  });
  vi.stubGlobal("clearTimeout", (timer: ReturnType<typeof setTimeout> | undefined) => {
    running.delete(timer);
    clear(timer);
  });
  return {
    left: () => [...running.values()].filter((ms) => ms >= 1000),
    restore: () => {
      vi.unstubAllGlobals();
    },
  };
}
