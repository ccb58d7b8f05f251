import { client, type ListedRun } from "./client.js";
import { lookMs } from "./queries.js";

export interface RunFilter {
  readonly sessionId?: string | undefined;
  readonly projectId?: string | undefined;
}

export interface RunListSnapshot {
  /** The newest first. */
  readonly runs: readonly ListedRun[];
  /** Whether the oldest run is among them. */
  readonly isComplete: boolean;
  readonly isRead: boolean;
  readonly error: unknown;
}

/** Rows that are read at a time. */
const pageSize = 200;
/** Pages that a look at the newest reads at most, until it meets what was read before. */
const maxPages = 25;

export const idOf = ({ projectId, runId }: ListedRun) =>
  projectId === undefined ? runId : `${projectId}/${runId}`;

/** The stored runs as far as they were read: the newest again and again, older ones when someone looks for them. */
export class RunList {
  #snapshot: RunListSnapshot = { runs: [], isComplete: false, isRead: false, error: undefined };
  readonly #runs = new Map<string, ListedRun>();
  readonly #listeners = new Set<() => void>();
  #isReading = false;
  #isPaging = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly filter: RunFilter) {}

  readonly subscribe = (listener: () => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) void this.#look();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) clearTimeout(this.#timer);
    };
  };

  readonly snapshot = () => this.#snapshot;

  /** Reads the next older page. */
  async readOlder(): Promise<void> {
    const last = this.#snapshot.runs.at(-1);
    if (this.#isPaging || last === undefined || this.#snapshot.isComplete) return;
    this.#isPaging = true;
    try {
      const page = await this.#page(idOf(last));
      this.#publish(page, page.length === 0);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isPaging = false;
    }
  }

  async #look(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      const newest = await this.#newest();
      // Those under way, which may be older than all of these.
      const { runs: running } = await client.runs({ ...this.#query, state: "running", limit: pageSize });
      const listedRunning = running.filter((run) => this.#runs.has(idOf(run)));
      this.#publish([...newest, ...listedRunning], newest.length === 0);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isReading = false;
      if (this.#listeners.size > 0) this.#timer = setTimeout(() => void this.#look(), lookMs);
    }
  }

  async #newest(): Promise<readonly ListedRun[]> {
    const read: ListedRun[] = [];
    for (let count = 0; count < maxPages; count += 1) {
      const page = await this.#page(read.length === 0 ? undefined : read.map(idOf).at(-1));
      read.push(...page);
      const isJoined = this.#runs.size === 0 || page.some((run) => this.#runs.has(idOf(run)));
      if (isJoined || page.length < pageSize) break;
    }
    return read;
  }

  async #page(after: string | undefined): Promise<readonly ListedRun[]> {
    const place = after === undefined ? {} : { after };
    return (await client.runs({ ...this.#query, ...place, limit: pageSize })).runs;
  }

  get #query() {
    const named = Object.entries(this.filter).filter(([, value]) => value !== undefined);
    return Object.fromEntries(named);
  }

  #publish(runs: readonly ListedRun[], isEnd: boolean): void {
    for (const run of runs) this.#runs.set(idOf(run), run);
    const ordered = [...this.#runs.values()].toSorted((one, other) =>
      other.createdAt === one.createdAt
        ? other.runId.localeCompare(one.runId)
        : other.createdAt.localeCompare(one.createdAt),
    );
    const isComplete = this.#snapshot.isComplete || isEnd;
    this.#tell({ runs: ordered, isComplete, isRead: true, error: undefined });
  }

  #fail(error: unknown): void {
    this.#tell({ ...this.#snapshot, error });
  }

  #tell(snapshot: RunListSnapshot): void {
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) listener();
  }
}
