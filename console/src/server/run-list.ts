import { AmbitError } from "@ambit/client";
import { client, type ListedRun } from "./client.js";
import { lookMs } from "./queries.js";

/** Which runs a list has, as the server filters them. */
export type RunFilter = Pick<
  NonNullable<Parameters<typeof client.runs>[0]>,
  "sessionId" | "state" | "outcome" | "harness" | "sandbox" | "asking"
> & { readonly projectId?: string };

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
/** Older runs under way that one look reads again, at most. */
const maxReadAgain = 20;

export const idOf = ({ projectId, runId }: Pick<ListedRun, "projectId" | "runId">) =>
  projectId === undefined ? runId : `${projectId}/${runId}`;

/** Whether a run comes before another one in the list. Times and ids are ASCII. */
const isAbove = (one: ListedRun, other: ListedRun) =>
  one.createdAt === other.createdAt ? one.runId > other.runId : one.createdAt > other.createdAt;

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
      this.#dropMissing(newest);
      this.#publish([...newest, ...(await this.#readAgain(newest))], newest.length === 0);
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

  /** Of the runs that stand among the newest, those that the server didn't list: they were deleted, or fit the filter no more. */
  #dropMissing(newest: readonly ListedRun[]): void {
    const listed = new Set(newest.map(idOf));
    const last = newest.at(-1);
    for (const [id, run] of this.#runs)
      if (!listed.has(id) && (last === undefined || run.createdAt > last.createdAt)) this.#runs.delete(id);
  }

  /** Runs under way, or with open questions, that are older than the newest. */
  async #readAgain(newest: readonly ListedRun[]): Promise<readonly ListedRun[]> {
    const listed = new Set(newest.map(idOf));
    const changing = [...this.#runs.values()].filter(
      (run) => (run.state !== "ended" || run.openQuestions > 0) && !listed.has(idOf(run)),
    );
    const looked = await Promise.all(changing.slice(0, maxReadAgain).map((run) => this.#again(run)));
    return looked.filter((run) => run !== undefined);
  }

  async #again(run: ListedRun): Promise<ListedRun | undefined> {
    const { runId, projectId } = run;
    try {
      const { result: _, deliveries: __, ...now } = await client.runInfo(runId, { projectId });
      const { state, outcome, asking } = this.filter;
      const fits =
        (state === undefined || state === now.state) &&
        (outcome === undefined || outcome === now.outcome) &&
        (asking === undefined || now.openQuestions > 0);
      if (fits) return now;
    } catch (error) {
      if (!(error instanceof AmbitError && error.status === 404)) throw error;
    }
    this.#runs.delete(idOf(run));
    return undefined;
  }

  async #page(after: string | undefined): Promise<readonly ListedRun[]> {
    const place = after === undefined ? {} : { after };
    return (await client.runs({ ...this.filter, ...place, limit: pageSize })).runs;
  }

  #publish(runs: readonly ListedRun[], isEnd: boolean): void {
    for (const run of runs) this.#runs.set(idOf(run), run);
    const ordered = [...this.#runs.values()].toSorted((one, other) => (isAbove(one, other) ? -1 : 1));
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
