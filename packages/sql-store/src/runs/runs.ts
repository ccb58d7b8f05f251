import type {
  EventChunk,
  EventGroup,
  NewRun,
  RunEnd,
  RunHead,
  RunQuery,
  StoredRun,
  Written,
} from "@ambit/durable/store";
import { countMoney, countStart } from "../counting.js";
import {
  Columns,
  type Database,
  type Essential,
  lockSkipping,
  named,
  type Row,
  type Statement,
  statement,
} from "../database.js";
import { headOf, runOf } from "../rows.js";
import { addDelivery } from "../shared/deliveries.js";
import { countRun } from "../sizes.js";
import { Where } from "../where.js";
import { appendGroup, isVisible, owned, selectHead } from "./append.js";

/** All columns but those that hold a whole result or request: a page of them could fill the memory. */
const listed = `id, project, session, state, replica, fence, digest, harness, sandbox, webhook, cancel_requested, events,
  size, created_at, started_at, ended_at, CAST(NULL AS TEXT) AS result`;

/** Chunks that one read may return. */
const maxChunks = 32;

/** Ended by this owner, just now or by an attempt whose response was lost. */
const ended = "id = $1 AND fence = $2 AND state = 'ended'";

/**
 * Returns a row if the run was created, and none if its id was taken.
 * @param condition under which it is created: `$2` is its project.
 */
export function createRun({ now }: Pick<Database, "now">, run: NewRun, condition = "1 = 1"): Statement {
  const { id, project, session, state, replica, digest, harness, sandbox, sealedRequest, webhook } = run;
  const { count, text } = run.announced ?? { count: 0, text: "" };
  return statement(
    `INSERT INTO ambit_runs (id, project, session, state, replica, fence, digest, harness, sandbox, sealed, webhook,
      events, size, created_at, started_at)
    SELECT ${texts(1, 5)}, 1, ${texts(6, 10)}, CAST($11 AS BIGINT), CAST($12 AS BIGINT),
      ${now}, ${state === "running" ? now : "CAST(NULL AS BIGINT)"}
    WHERE ${condition}
    ON CONFLICT (id) DO NOTHING RETURNING id`,
    ...[id, project, session, state, replica, digest, harness, sandbox, sealedRequest],
    ...[webhook === undefined ? undefined : JSON.stringify(webhook), count, text.length],
  );
}

/** After `createRun`: its first events. Those of an existing run with its id stay as they are. */
export function announce({ id, replica, announced }: NewRun): readonly Statement[] {
  if (announced === undefined) return [];
  const { count, text } = announced;
  const one = statement(
    `INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, 1, events, CAST($4 AS TEXT) FROM ambit_runs WHERE id = $1 AND replica = $2 AND events = $3 AND fence = 1
    ON CONFLICT (run_id, first_event) DO NOTHING`,
    ...[id, replica, count, text],
  );
  return [named("announce run", one)];
}

/** Placeholders for texts. */
function texts(first: number, last: number): string {
  return Array.from({ length: last - first + 1 }, (_, index) => `CAST($${first + index} AS TEXT)`).join(", ");
}

/** Both in one statement. */
function createAnnounced(create: Statement, { count, text }: NonNullable<NewRun["announced"]>): Statement {
  const values = create.values ?? [];
  const [countAt, textAt] = [values.length + 1, values.length + 2];
  return {
    name: `${create.name} announced`,
    text: `WITH created AS (${create.text})
    INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, 1, CAST($${countAt} AS BIGINT), CAST($${textAt} AS TEXT) FROM created RETURNING run_id`,
    values: [...values, count, text],
  };
}

/** Runs and their events. */
export class Runs {
  constructor(readonly database: Database) {}

  async create(run: NewRun): Promise<StoredRun | undefined> {
    const create = named(`create ${run.state}`, createRun(this.database, run));
    const { announced } = run;
    const [created] = await this.database.run(
      announced !== undefined && this.database.insertsInWith
        ? [createAnnounced(create, announced)]
        : [create, ...announce(run)],
    );
    if (created?.length === 1) return undefined;
    const [row] = await this.#rows(selectRun(run.id));
    if (row === undefined) throw new Error(`The run '${run.id}' was deleted while it was created.`);
    return runOf(row);
  }

  async claim(id: string, replica: string): Promise<{ fence: number; sealedRequest: string } | undefined> {
    const { now } = this.database;
    // Another replica that claims it isn't waited for.
    const queued = `WHERE id = $1 AND state = 'queued'${lockSkipping(this.database)}`;
    const [before, claimed] = await this.database.run([
      statement(`SELECT sealed FROM ambit_runs ${queued}`, id),
      statement(
        `UPDATE ambit_runs SET state = 'running', replica = $2, fence = fence + 1, sealed = NULL, started_at = ${now}
        WHERE id IN (SELECT id FROM ambit_runs ${queued}) RETURNING fence`,
        ...[id, replica],
      ),
      countStart(this.database, id, replica),
    ]);
    const [row] = claimed ?? [];
    const [sealed] = before ?? [];
    if (row === undefined || sealed === undefined) return undefined;
    return { fence: new Columns(row).number("fence"), sealedRequest: new Columns(sealed).text("sealed") };
  }

  async nextQueued(limit: number, except: readonly (string | null)[] = []): Promise<readonly string[]> {
    const places = except.map((_, index) => `$${index + 2}`);
    const others = places.length === 0 ? "" : `AND COALESCE(project, '') NOT IN (${places.join(", ")})`;
    const rows = await this.#rows(
      statement(
        `SELECT id FROM ambit_runs WHERE state = 'queued' ${others} ORDER BY created_at, id LIMIT $1${lockSkipping(this.database)}`,
        ...[limit, ...except.map((project) => project ?? "")],
      ),
    );
    return rows.map((row) => new Columns(row).text("id"));
  }

  append(group: EventGroup): Promise<Written> {
    return appendGroup(this.database, group);
  }

  async finish(
    id: string,
    fence: number,
    { result, session, paused, deliveries = [], usd = 0 }: RunEnd,
  ): Promise<Written> {
    const { now } = this.database;
    const counts = [
      named("count run", countRun(id, fence, result.length)),
      ...(usd > 0 ? [countMoney(this.database, id, fence, usd)] : []),
    ];
    const rows = await this.database.run(
      [
        ...counts,
        named(
          "end run",
          statement(
            `UPDATE ambit_runs SET state = 'ended', result = $3, size = size + $4, ended_at = ${now}
          WHERE ${owned} RETURNING id`,
            ...[id, fence, result, result.length],
          ),
        ),
        // A question belongs to the session's next turn; a run without a session gets its name in the result.
        named(
          "name questions",
          statement(
            `UPDATE ambit_interactions SET session = COALESCE(session, $2)
          WHERE run_id = $1 AND EXISTS (SELECT 1 FROM ambit_runs WHERE id = $1 AND fence = $3 AND state = 'ended')`,
            ...[id, session, fence],
          ),
        ),
        ...(paused ? [] : [closeQuestions(id, fence)]),
        ...deliveries.map((one) => addDelivery(this.database, one, ended, id, fence)),
        selectHead(id),
      ],
      "end",
    );
    if (rows[counts.length]?.length === 1) return "written";
    const row = rows.at(-1)?.[0];
    const head = row === undefined ? undefined : headOf(row);
    return head?.state === "ended" && head.fence === fence ? "written" : "fenced";
  }

  async get(id: string): Promise<StoredRun | undefined> {
    const [row] = await this.#rows(selectRun(id));
    return row === undefined ? undefined : runOf(row);
  }

  async list({ id, project, session, state, after, limit }: RunQuery): Promise<readonly StoredRun[]> {
    const where = new Where().equals("project", project).equals("session", session).equals("state", state);
    where.equals("id", id);
    if (state === undefined) where.isNot("state", "deleted");
    where.before("ambit_runs", after);
    const max = where.value(limit);
    const rows = await this.#rows({
      text: `SELECT ${listed} FROM ambit_runs ${where} ORDER BY created_at DESC, id DESC LIMIT ${max}`,
      values: where.values,
    });
    return rows.map(runOf);
  }

  async heads(ids: readonly string[]): Promise<readonly RunHead[]> {
    if (ids.length === 0) return [];
    const places = ids.map((_id, index) => `$${index + 1}`).join(", ");
    const rows = await this.#rows(
      statement(
        `SELECT id, state, fence, events FROM ambit_runs WHERE id IN (${places}) AND ${isVisible}`,
        ...ids,
      ),
    );
    return rows.map(headOf);
  }

  async read(id: string, after: number, maxCharacters: number): Promise<readonly EventChunk[]> {
    const rows = await this.#rows(
      statement(
        `SELECT first_event, last_event, body FROM (
          SELECT first_event, last_event, body,
            SUM(LENGTH(body)) OVER (ORDER BY first_event) - LENGTH(body) AS before_it
          FROM (SELECT first_event, last_event, body FROM ambit_chunks
            WHERE run_id = $1 AND last_event > $2 AND EXISTS (SELECT 1 FROM ambit_runs WHERE id = $1 AND ${isVisible})
            AND first_event >= COALESCE((SELECT MAX(first_event)
              FROM ambit_chunks WHERE run_id = $1 AND first_event <= CAST($2 AS BIGINT) + 1), 0) ORDER BY first_event LIMIT ${maxChunks}) AS near
        ) AS measured WHERE before_it < $3 ORDER BY first_event`,
        ...[id, after, maxCharacters],
      ),
    );
    return rows.map((row) => {
      const columns = new Columns(row);
      const first = columns.number("first_event");
      return { first, count: columns.number("last_event") - first + 1, text: columns.text("body") };
    });
  }

  async requestCancel(id: string): Promise<boolean> {
    const rows = await this.#rows(
      statement(
        "UPDATE ambit_runs SET cancel_requested = 1 WHERE id = $1 AND state IN ('queued', 'running') RETURNING id",
        id,
      ),
      "end",
    );
    return rows.length === 1;
  }

  async #rows(one: Statement, essential?: Essential): Promise<readonly Row[]> {
    const [rows = []] = await this.database.run([one], essential);
    return rows;
  }
}

function closeQuestions(id: string, fence: number): Statement {
  return named(
    "close questions",
    statement(
      `UPDATE ambit_interactions SET state = 'expired' WHERE run_id = $1 AND state = 'open'
      AND EXISTS (SELECT 1 FROM ambit_runs WHERE id = $1 AND fence = $2 AND state = 'ended')`,
      ...[id, fence],
    ),
  );
}

const selectRun = (id: string) => statement(`SELECT * FROM ambit_runs WHERE id = $1 AND ${isVisible}`, id);
