import { AtCapacity } from "@ambit/core";
import type { StoredRun } from "@ambit/durable/store";

/** Readers at one time. */
export interface ReaderLimits {
  readonly perRun: number;
  readonly perProject: number;
}

/** Who reads the logs and files of stored runs, and snapshots. Each reader may hold a page of a log for as long as it doesn't read. */
export class Readers {
  readonly #ofRuns = new Map<string, number>();
  readonly #ofProjects = new Map<string | undefined, number>();

  constructor(readonly limits: ReaderLimits) {}

  /** Reads as one more reader of the run. @throws AtCapacity beyond the limits */
  async reading<Result>(
    run: Pick<StoredRun, "id" | "project">,
    read: () => Promise<Result>,
  ): Promise<Result> {
    const { id, project } = run;
    const { perRun, perProject } = this.limits;
    if ((this.#ofRuns.get(id) ?? 0) >= perRun)
      throw new AtCapacity(`The run or snapshot has ${perRun} readers already (server.maxReadersPerRun).`);
    if ((this.#ofProjects.get(project) ?? 0) >= perProject)
      throw new AtCapacity(`The project has ${perProject} readers already (server.maxReadersPerProject).`);
    add(this.#ofRuns, id, 1);
    add(this.#ofProjects, project, 1);
    try {
      return await read();
    } finally {
      add(this.#ofRuns, id, -1);
      add(this.#ofProjects, project, -1);
    }
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, by: number): void {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
