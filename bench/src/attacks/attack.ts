/** What an attack gets. It crosses a process boundary as JSON. */
export interface AttackTarget {
  /** Of the attacked server. */
  readonly url: string;
  /** Of a caller that may begin runs. Connections and requests of strangers don't send it. */
  readonly token: string;
  /** A name of this machine that resolves to loopback, and a certificate for it. Absent: this machine has none. */
  readonly host?: { readonly name: string; readonly key: string; readonly certificate: string };
}

/** What an attack has done so far, by what it counts. Nothing counted means that it didn't take place. */
export type Tally = Record<string, number>;

/** One way to cost a server's event loop. */
export interface LoadAttack {
  /** Attacks until the signal aborts, and resolves when it has stopped. */
  run(target: AttackTarget, tally: Tally, signal: AbortSignal): Promise<void>;
}

export function count(tally: Tally, what: string, by = 1): void {
  tally[what] = (tally[what] ?? 0) + by;
}

/** Repeats a step in several lanes at once until the signal aborts. A failed step is counted and repeated. */
export async function repeatedly(
  lanes: number,
  step: (lane: number) => Promise<void>,
  tally: Tally,
  signal: AbortSignal,
): Promise<void> {
  const lane = async (number: number) => {
    while (!signal.aborted) {
      try {
        await step(number);
      } catch (error) {
        if (signal.aborted) return;
        count(tally, `failed: ${String(error).slice(0, 200)}`);
        // A refused caller tries again, and doesn't spin.
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, number) => lane(number)));
}
