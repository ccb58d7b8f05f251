import { NotFound } from "@ambit/core";
import { idOfRun } from "@ambit/core/contract";
import type { RunEnd, Written } from "../store/index.js";
import { follow, pageCharacters, type RecordSource } from "./follow.js";
import type { RecentRecords } from "./recent-records.js";
import type { RecordGroup, Records, RunLog } from "./run-log.js";

/** Characters that the reader who sets the pace may be behind; beyond, the run waits for it. */
const maxUnread = 262_144;

/** What a log's writer writes, besides its text. */
export interface MemoryRows {
  append(group: RecordGroup): Written;
  finish(end: RunEnd): Written;
}

/**
 * A log in this process. It keeps the latest records only, so the run waits for the reader that came first, usually the
 * caller that began it. Nothing waits for the others, nor where nobody reads: a reader that falls behind what is kept is
 * told so.
 */
export class MemoryLog {
  /** Characters that each has taken, in the order in which they came. */
  readonly #readers = new Set<{ taken: number }>();
  #wakeWriter: (() => void) | undefined;
  /** The run has ended, and what it still writes is little. */
  #hasEnded = false;

  constructor(
    readonly id: string,
    readonly recent: RecentRecords,
  ) {}

  /** For what executes the run. */
  writer(rows: MemoryRows): RunLog {
    return {
      append: async (group, signal) => {
        const written = rows.append(group);
        if (written === "written" && this.#isAhead) await this.#room(signal);
        return written;
      },
      end: async (end) => rows.finish(end),
      follow: (after, signal) => this.follow(after, signal),
      runEnded: () => {
        this.#hasEnded = true;
        this.#proceed();
      },
      close: () => {},
    };
  }

  /** @throws NotFound at once when the next record is no longer kept */
  follow(after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    if (after + 1 < this.recent.first) this.#dropped();
    return this.#follow(after, signal);
  }

  async *#follow(after: number, signal: AbortSignal): AsyncGenerator<Records, void, undefined> {
    const { recent } = this;
    const reader = { taken: recent.writtenUpTo(after) };
    const source: RecordSource = {
      read: (last) => {
        reader.taken = recent.writtenUpTo(last);
        this.#proceed();
        return recent.after(last, pageCharacters) ?? this.#dropped();
      },
      end: () => recent.end,
      more: () => recent.changed(signal),
    };
    this.#readers.add(reader);
    this.#proceed();
    try {
      yield* follow(source, after, signal);
    } finally {
      this.#readers.delete(reader);
      this.#proceed();
    }
  }

  get #isAhead(): boolean {
    return !this.#hasEnded && this.recent.written - this.recent.needed > maxUnread;
  }

  #dropped(): never {
    const { first } = this.recent;
    const fix = `continue with after=${first - 1}, or load a store, which keeps all of them`;
    throw new NotFound(
      `The events of run '${idOfRun(this.id)}' before number ${first} are no longer in memory: ${fix}.`,
    );
  }

  #room(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#wakeWriter = undefined;
        signal.removeEventListener("abort", wake);
        resolve();
      };
      this.#wakeWriter = wake;
      signal.addEventListener("abort", wake, { once: true });
      if (signal.aborted) wake();
    });
  }

  #proceed(): void {
    const [first] = this.#readers;
    this.recent.needed = first?.taken ?? Number.POSITIVE_INFINITY;
    if (!this.#isAhead) this.#wakeWriter?.();
  }
}
