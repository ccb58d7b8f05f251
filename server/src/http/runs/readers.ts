import { AtCapacity } from "@ambit/core";
import type { StoredRun } from "@ambit/durable/store";

/** Readers at one time. */
export interface ReaderLimits {
  readonly perRun: number;
  readonly perProject: number;
  /** Milliseconds that each keeps its place: otherwise more readers than places would end each other without a pause. */
  readonly minReadingMs: number;
}

interface Reader extends Pick<StoredRun, "id" | "project"> {
  /** Ends its connection. Undefined for one that reads a file or a snapshot: it has an end, or a time limit. */
  readonly end: (() => void) | undefined;
  readonly sinceMs: number;
}

/**
 * Who reads the logs and files of stored runs, snapshots, and open workspaces. Each reader may hold a page of a log for as long as it doesn't read.
 * The oldest one that follows a log makes room for a new one: of a reader that is gone without a word, nothing else tells.
 */
export class Readers {
  /** Each set keeps the order in which its readers began. */
  readonly #ofRuns = new Map<string, Set<Reader>>();
  readonly #ofProjects = new Map<string | undefined, Set<Reader>>();

  constructor(
    readonly limits: ReaderLimits,
    readonly nowMs: () => number = () => performance.now(),
  ) {}

  /**
   * Reads as one more reader of the run.
   * @param end of one that follows a log: called to make room, after which `read` must settle. It can begin again where it was.
   * @throws AtCapacity beyond the limits
   */
  async reading<Result>(
    run: Pick<StoredRun, "id" | "project">,
    read: () => Promise<Result>,
    end?: () => void,
  ): Promise<Result> {
    const { id, project } = run;
    const { perRun, perProject } = this.limits;
    const ofRun = this.#ofRuns.get(id) ?? new Set();
    const ofProject = this.#ofProjects.get(project) ?? new Set();
    if (!this.#hasRoom(ofRun, perRun))
      throw new AtCapacity(
        `The run, snapshot or workspace has ${perRun} readers already (server.maxReadersPerRun).`,
      );
    if (!this.#hasRoom(ofProject, perProject))
      throw new AtCapacity(`The project has ${perProject} readers already (server.maxReadersPerProject).`);
    const reader = { id, project, end, sinceMs: this.nowMs() };
    this.#ofRuns.set(id, ofRun.add(reader));
    this.#ofProjects.set(project, ofProject.add(reader));
    try {
      return await read();
    } finally {
      this.#forget(reader);
    }
  }

  #forget(reader: Reader): void {
    remove(this.#ofRuns, reader.id, reader);
    remove(this.#ofProjects, reader.project, reader);
  }

  /** Ends the oldest one if it is needed, and may be ended. */
  #hasRoom(readers: ReadonlySet<Reader>, max: number): boolean {
    if (readers.size < max) return true;
    const latestMs = this.nowMs() - this.limits.minReadingMs;
    const oldest = [...readers].find(({ end, sinceMs }) => end !== undefined && sinceMs <= latestMs);
    if (oldest === undefined) return false;
    // Its `read` settles a moment later, and it counts until then otherwise.
    this.#forget(oldest);
    oldest.end?.();
    return true;
  }
}

function remove<Key>(readers: Map<Key, Set<Reader>>, key: Key, reader: Reader): void {
  const all = readers.get(key);
  all?.delete(reader);
  if (all?.size === 0) readers.delete(key);
}
