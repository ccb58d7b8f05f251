import { readFileSync } from "node:fs";

/** One session's share of the connections that the server may have open. */
export interface Share {
  /** Takes one connection; false if the budget is used up. Every true needs one `give`. */
  take(): boolean;
  give(): void;
  /** Called when the session is closed. */
  leave(): void;
}

/**
 * Client connections of all sessions together. A session below an equal share always gets one: connections of
 * another session can't keep it from the network. So at most twice the limit can be open.
 */
export class ConnectionBudget {
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
      take: () => {
        const equalPart = Math.max(1, Math.floor(this.#limit / this.#sessions));
        if (this.#taken >= this.#limit && own >= equalPart) return false;
        own += 1;
        this.#taken += 1;
        return true;
      },
      give: () => {
        own -= 1;
        this.#taken -= 1;
      },
      leave: () => {
        if (isReleased) return;
        isReleased = true;
        this.#sessions -= 1;
      },
    };
  }
}

/** Assumed if the limit of open files can't be read. */
const assumedOpenFiles = 1_024;

/** The soft limit of open files in the text of `/proc/self/limits`. */
export function openFilesLimit(text: string): number {
  const found = /^Max open files\s+(\d+|unlimited)/m.exec(text)?.[1];
  if (found === "unlimited") return Number.MAX_SAFE_INTEGER;
  return found === undefined ? assumedOpenFiles : Number(found);
}

/** A connection has two descriptors at most, so an eighth of the limit leaves half of them to the rest of the server. */
export function serverConnections(openFiles: number): number {
  return Math.floor(openFiles / 8);
}

let shared: ConnectionBudget | undefined;

/** The budget of this process. */
export function serverBudget(): ConnectionBudget {
  shared ??= new ConnectionBudget(serverConnections(openFilesLimit(limitsOfThisProcess())));
  return shared;
}

function limitsOfThisProcess(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    // Not Linux: assumes the default limit.
    return "";
  }
}
