import { openFilesLimit } from "../open-files.js";

/** One session's share of what the server has in all. */
export interface Share {
  /** Takes some, by default one; false if the budget is used up. Every true needs one `give` of as much. */
  take(amount?: number): boolean;
  release(amount?: number): void;
  /** Called when the session is closed. */
  leave(): void;
}

/**
 * What all sessions together may have: client connections, or memory of decoders. A session below an equal share always
 * gets some: another session can't keep it from the network. So at most twice the limit can be taken.
 */
export class SharedBudget {
  readonly #limit: number;
  #taken = 0;
  #sessions = 0;

  constructor(limit: number) {
    this.#limit = Math.max(1, Math.floor(limit));
  }

  get taken(): number {
    return this.#taken;
  }

  join(): Share {
    this.#sessions += 1;
    let own = 0;
    let isReleased = false;
    return {
      take: (amount = 1) => {
        const equalPart = Math.max(1, Math.floor(this.#limit / this.#sessions));
        if (this.#taken + amount > this.#limit && own + amount > equalPart) return false;
        own += amount;
        this.#taken += amount;
        return true;
      },
      release: (amount = 1) => {
        own -= amount;
        this.#taken -= amount;
      },
      leave: () => {
        if (isReleased) return;
        isReleased = true;
        this.#sessions -= 1;
      },
    };
  }
}

/** Assumed where nothing says the limit of open files. */
const assumedOpenFiles = 1_024;

/** A connection has two descriptors at most, so an eighth of the limit leaves half of them to the rest of the server. */
export function serverConnections(openFiles = assumedOpenFiles): number {
  return Math.floor(openFiles / 8);
}

let connections: SharedBudget | undefined;

/** This process's budget of connections. */
export function serverBudget(): SharedBudget {
  connections ??= new SharedBudget(serverConnections(openFilesLimit()));
  return connections;
}
