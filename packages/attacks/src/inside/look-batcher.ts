import { availableParallelism } from "node:os";
import type { Attempts, Reached } from "./attempts.js";

/** Makes attempts with one program. */
type Look = (attempts: Attempts) => Promise<Reached>;

interface PendingAttempts {
  readonly attempts: Attempts;
  resolve(reached: Reached): void;
  reject(error: unknown): void;
}

interface Program {
  readonly place: object;
  /** Undefined: it makes no attempts of others. */
  readonly key: string | undefined;
  readonly look: Look;
  readonly asked: PendingAttempts[];
}

/** One more than the processors, since a program also waits. */
const maxAtOnce = availableParallelism() + 1;

/**
 * Starts a few programs at once. What is asked of the same place while its program waits for its turn is done by that program:
 * most of what a look costs is the start of a sandbox's process and of Node.js.
 */
export class LookBatcher {
  readonly #waiting: Program[] = [];
  #running = 0;

  /** @param key of programs that differ in nothing but their attempts; undefined for a program of its own. */
  look(place: object, key: string | undefined, attempts: Attempts, look: Look): Promise<Reached> {
    return new Promise((resolve, reject) => {
      const asked = { attempts, resolve, reject };
      const isIt = (one: Program) => key !== undefined && one.key === key && one.place === place;
      const program = this.#waiting.find(isIt);
      if (program === undefined) this.#waiting.push({ place, key, look, asked: [asked] });
      else program.asked.push(asked);
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < maxAtOnce) {
      const program = this.#waiting.shift();
      if (program === undefined) return;
      this.#running += 1;
      void run(program).finally(() => {
        this.#running -= 1;
        this.#next();
      });
    }
  }
}

async function run({ look, asked }: Program): Promise<void> {
  const numbered = asked.flatMap(({ attempts }, part) =>
    Object.entries(attempts).map(([id, one]) => [`${part} ${id}`, one] as const),
  );
  try {
    const reached = await look(Object.fromEntries(numbered));
    for (const [part, { attempts, resolve }] of asked.entries()) {
      const own = Object.keys(attempts).map((id) => [id, reached[`${part} ${id}`] ?? null] as const);
      resolve(Object.fromEntries(own));
    }
  } catch (error) {
    for (const { reject } of asked) reject(error);
  }
}
