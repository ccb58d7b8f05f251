import type { Log } from "@ambit/core/plugin";
import type pg from "pg";
import { PgBoss, type SendOptions } from "pg-boss";

const queueName = "runs";
/** Seconds that a replica has to claim a run that it took from the queue; then another replica gets it. */
const claimSeconds = 30;

/** The queued runs, kept by pg-boss in a separate schema. Started when it is first needed. */
export class RunQueue {
  #boss: Promise<PgBoss> | undefined;
  /** The jobs of runs that this replica took, by run. */
  readonly #taken = new Map<string, string>();

  constructor(
    readonly pool: pg.Pool,
    readonly schema: string,
    readonly log: Log,
  ) {}

  /** In the transaction that creates the run: either both exist or neither. */
  async add(runId: string, project: string | undefined, client: pg.ClientBase): Promise<void> {
    const boss = await this.#started();
    await boss.send(queueName, { runId }, { db: databaseOf(client), group: { id: groupOf(project) } });
  }

  /** Makes the queue's tables, which can't be done in another's transaction. */
  async ready(): Promise<void> {
    await this.#started();
  }

  /** Takes as many of the oldest runs as possible, from projects that aren't excluded. */
  async take(limit: number, except: readonly (string | null)[] = []): Promise<readonly string[]> {
    const boss = await this.#started();
    const jobs = await boss.fetch<{ runId: string }>(queueName, {
      batchSize: limit,
      ignoreGroups: except.map((project) => groupOf(project)),
    });
    for (const { id, data } of jobs) this.#taken.set(data.runId, id);
    return jobs.map(({ data }) => data.runId);
  }

  /** The run was claimed by some replica and leaves the queue. */
  async done(runId: string): Promise<void> {
    const job = this.#taken.get(runId);
    if (job === undefined) return;
    this.#taken.delete(runId);
    const boss = await this.#started();
    await boss.complete(queueName, job);
  }

  async close(): Promise<void> {
    const boss = await this.#boss?.catch(() => undefined);
    await boss?.stop({ graceful: false, close: false });
  }

  #started(): Promise<PgBoss> {
    this.#boss ??= this.#start().catch((error: unknown) => {
      this.#boss = undefined;
      throw error;
    });
    return this.#boss;
  }

  async #start(): Promise<PgBoss> {
    const boss = new PgBoss({ db: databaseOf(this.pool), schema: `${this.schema}_queue`, schedule: false });
    boss.on("error", (error) => this.log.warn({ error: error.message }, "the queue of runs failed"));
    await boss.start();
    const queue = { expireInSeconds: claimSeconds, retryLimit: 1_000, retryDelay: 0 };
    await boss.createQueue(queueName, queue);
    return boss;
  }
}

/** One queue for each project, and one for runs without. */
function groupOf(project: string | null | undefined): string {
  return project == null ? "none" : `project:${project}`;
}

function databaseOf(client: pg.Pool | pg.ClientBase): NonNullable<SendOptions["db"]> {
  return { executeSql: (text, values) => client.query(text, values) };
}
