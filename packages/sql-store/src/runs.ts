import {
  type EventGroup,
  type NewRun,
  type QueueLimits,
  type RunEnd,
  type RunHead,
  type RunQuota,
  type Store,
  statesBefore,
  type Written,
} from "@ambit/durable/store";
import { addCost, countRun, countStart, countUse, dayMs, lockUsage, today } from "./counts.js";
import { Columns, type Database, diskFull, type Row, type Statement } from "./database.js";
import { addDelivery, addEndDelivery } from "./deliveries.js";
import {
  all,
  asInteger,
  asText,
  before,
  clock,
  constant,
  equal,
  list,
  locking,
  lockSkipping,
  prepared,
  rowsOf,
  type Sql,
  sql,
  statement,
} from "./query.js";
import { endClaims } from "./questions.js";
import { headOf, listedRun, runOf, wholeRun } from "./rows.js";
import { isBusy, isElsewhere } from "./sessions.js";

/** Chunks that one read may return. */
const maxChunks = 32;

/**
 * Returns a row if the run was created, and none if its id was taken.
 * @param condition under which it is created.
 */
function createRun(database: Pick<Database, "now">, run: NewRun, condition = sql`1 = 1`): Sql {
  const { id, project, session, state, replica, digest, harness, sandbox, sealedRequest, webhook } = run;
  const { count, text } = run.announced ?? { count: 0, text: "" };
  const now = clock(database);
  const texts = [id, project, session, state, replica].map(asText);
  const details = [digest, harness, sandbox, sealedRequest, webhook && JSON.stringify(webhook)].map(asText);
  const recovery = [run.trace, run.sealedRecovery, run.sealedCopy].map(asText);
  const size = text.length + (run.sealedCopy?.length ?? 0);
  return sql`INSERT INTO ambit_runs (id, project, session, state, replica, fence, digest, harness, sandbox, sealed,
      webhook, trace, sealed_recovery, sealed_copy, events, size, created_at, started_at)
    SELECT ${sql.join(texts)}, 1, ${sql.join(details)}, ${sql.join(recovery)},
      ${asInteger(count)}, ${asInteger(size)}, ${now}, ${state === "running" ? now : sql`CAST(NULL AS BIGINT)`}
    WHERE ${condition} ON CONFLICT (id) DO NOTHING RETURNING id`;
}

/** Adds the first events of a run after `createRun`. Those of an existing run with its id stay as they are. */
function announce({ id, replica, announced }: NewRun): readonly Statement[] {
  if (announced === undefined) return [];
  const { count, text } = announced;
  const query = sql`INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, 1, events, ${asText(text)} FROM ambit_runs
    WHERE id = ${id} AND replica = ${replica} AND events = ${count} AND fence = 1
    ON CONFLICT (run_id, first_event) DO NOTHING`;
  return [statement(query, "announce run")];
}

/** Creates a run with its first events in one statement. */
function createAnnounced(create: Sql, { count, text }: NonNullable<NewRun["announced"]>): Sql {
  return sql`WITH created AS (${create})
    INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, 1, ${asInteger(count)}, ${asText(text)} FROM created RETURNING run_id`;
}

/** Runs and their events. */
export function runRows(
  database: Database,
): Pick<
  Store,
  | "create"
  | "claim"
  | "keepRecovery"
  | "nextQueued"
  | "append"
  | "finish"
  | "get"
  | "list"
  | "heads"
  | "read"
  | "requestCancel"
> {
  return {
    async create(run) {
      const create = createRun(database, run);
      const { announced } = run;
      const [created] = await database.run(
        announced !== undefined && database.insertsInWith
          ? [statement(createAnnounced(create, announced), `create ${run.state} announced`)]
          : [statement(create, `create ${run.state}`), ...announce(run)],
      );
      if (created?.length === 1) return undefined;
      const [row] = await rowsOf(database, selectRun(run.id));
      if (row === undefined) throw new Error(`The run '${run.id}' was deleted while it was created.`);
      return runOf(row);
    },

    async claim(id, replica) {
      // Another replica that claims it isn't waited for.
      const queued = sql`FROM ambit_runs WHERE id = ${id} AND state = 'queued'${lockSkipping(database)}`;
      const [queuedRows, claimed] = await database.run([
        statement(sql`SELECT sealed ${queued}`),
        statement(
          sql`UPDATE ambit_runs SET state = 'running', replica = ${replica}, fence = fence + 1, sealed = NULL,
            started_at = ${clock(database)} WHERE id IN (SELECT id ${queued}) RETURNING fence`,
        ),
        countStart(database, id, replica),
      ]);
      const [row] = claimed ?? [];
      const [sealed] = queuedRows ?? [];
      if (row === undefined || sealed === undefined) return undefined;
      return { fence: new Columns(row).number("fence"), sealedRequest: new Columns(sealed).text("sealed") };
    },

    async keepRecovery(id, fence, recovery) {
      const { trace, sealedRecovery, sealedCopy } = recovery;
      await rowsOf(
        database,
        sql`UPDATE ambit_runs SET trace = ${asText(trace)}, sealed_recovery = ${asText(sealedRecovery)},
          sealed_copy = ${asText(sealedCopy)}, size = size + ${asInteger(sealedCopy?.length ?? 0)}
          WHERE ${owned(id, fence)}`,
      );
    },

    async nextQueued(replica, limit, except = []) {
      const wanted = [sql`state = 'queued'`, sql`NOT ${isBusy}`, sql`NOT ${isElsewhere(database, replica)}`];
      const others = except.map((project) => project ?? "");
      if (others.length > 0) wanted.push(sql`COALESCE(project, '') NOT IN ${list(others)}`);
      const rows = await rowsOf(
        database,
        sql`SELECT id FROM ambit_runs WHERE ${all(wanted)}
          ORDER BY created_at, id LIMIT ${limit}${lockSkipping(database)}`,
      );
      return rows.map((row) => new Columns(row).text("id"));
    },

    append(group) {
      return appendGroup(database, group);
    },

    async finish(id, fence, end) {
      const { outcome, model = "", inputTokens = 0, outputTokens = 0, usd = 0 } = end;
      const use = { outcome, model, inputTokens, outputTokens, usd };
      try {
        return await finishRun(database, id, fence, end, [countUse(database, id, fence, use)]);
      } catch (error) {
        // A full disk may have no room for another row of what was used, and must not keep a run from its end.
        if (!(error instanceof Error && error.message === diskFull)) throw error;
        return await finishRun(database, id, fence, end, []);
      }
    },

    async get(id) {
      const [row] = await rowsOf(database, selectRun(id));
      return row === undefined ? undefined : runOf(row);
    },

    async list({ project, after, limit, ...others }) {
      const { id, session, state, outcome, harness, sandbox, asking } = others;
      const wanted = [
        ...equal({ project, session, state, outcome, harness, sandbox, id }),
        ...before("ambit_runs", after, project),
        ...(asking === true ? [sql`id IN (SELECT run_id FROM ambit_interactions WHERE state = 'open')`] : []),
      ];
      if (state === undefined) wanted.push(isVisible);
      const rows = await rowsOf(
        database,
        sql`SELECT ${listedRun} WHERE ${all(wanted)} ORDER BY created_at DESC, id DESC LIMIT ${limit}`,
      );
      return rows.map(runOf);
    },

    async heads(ids) {
      if (ids.length === 0) return [];
      const rows = await rowsOf(
        database,
        sql`SELECT id, state, fence, events FROM ambit_runs WHERE id IN ${list(ids)} AND ${isVisible}`,
      );
      return rows.map(headOf);
    },

    async read(id, after, maxCharacters) {
      const rows = await rowsOf(
        database,
        sql`SELECT first_event, last_event, body FROM (
            SELECT first_event, last_event, body,
              SUM(LENGTH(body)) OVER (ORDER BY first_event) - LENGTH(body) AS before_it
            FROM (SELECT first_event, last_event, body FROM ambit_chunks
              WHERE run_id = ${id} AND last_event > ${after}
              AND EXISTS (SELECT 1 FROM ambit_runs WHERE id = ${id} AND ${isVisible})
              AND first_event >= COALESCE((SELECT MAX(first_event) FROM ambit_chunks
                WHERE run_id = ${id} AND first_event <= ${asInteger(after)} + 1), 0)
              ORDER BY first_event LIMIT ${constant(maxChunks)}) AS near
          ) AS measured WHERE before_it < ${maxCharacters} ORDER BY first_event`,
      );
      return rows.map((row) => {
        const columns = new Columns(row);
        const first = columns.number("first_event");
        return { first, count: columns.number("last_event") - first + 1, text: columns.text("body") };
      });
    },

    async requestCancel(id) {
      const rows = await rowsOf(
        database,
        sql`UPDATE ambit_runs SET cancel_requested = 1
          WHERE id = ${id} AND state IN ('queued', 'running') RETURNING id`,
        "end",
      );
      return rows.length === 1;
    },
  };
}

async function finishRun(
  database: Database,
  id: string,
  fence: number,
  { result, outcome, summary, session, delivery, usd = 0 }: RunEnd,
  counting: readonly Statement[],
): Promise<Written> {
  const isOwned = owned(id, fence);
  const characters = result.length + summary.length;
  const rows = await database.run(
    [
      // Several ends may arrive at once, after an outage for example. Until the first is committed, the others wait
      // here; then they find the run ended, and everything below changes nothing.
      statement(sql`SELECT id FROM ambit_runs WHERE ${isOwned}${locking(database)}`, "lock run"),
      countRun(id, fence, characters),
      ...(usd > 0 ? [addCost(database, id, fence, usd)] : []),
      ...counting,
      // A question belongs to the session's next turn; a run without a session gets its name in the result.
      statement(
        sql`UPDATE ambit_interactions SET session = COALESCE(session, ${session})
        WHERE run_id = ${id} AND EXISTS (SELECT 1 FROM ambit_runs WHERE ${isOwned})`,
        "name questions",
      ),
      ...(outcome === "paused" ? [] : [closeQuestions(id, isOwned)]),
      ...endClaims(id, isOwned),
      ...(delivery === undefined ? [] : [addEndDelivery(database, delivery, isOwned)]),
      statement(
        sql`UPDATE ambit_runs SET state = 'ended', outcome = ${outcome}, summary = ${summary}, result = ${result},
          size = size + ${characters}, ended_at = ${clock(database)}, sealed_recovery = NULL WHERE ${isOwned} RETURNING id`,
        "end run",
      ),
      selectHead({ id }),
    ],
    "end",
  );
  if (rows.at(-2)?.length === 1) return "written";
  const row = rows.at(-1)?.[0];
  const head = row === undefined ? undefined : headOf(row);
  return head?.state === "ended" && head.fence === fence ? "written" : "fenced";
}

function closeQuestions(id: string, isOwned: Sql): Statement {
  return statement(
    sql`UPDATE ambit_interactions SET state = 'expired' WHERE run_id = ${id} AND state = 'open'
      AND EXISTS (SELECT 1 FROM ambit_runs WHERE ${isOwned})`,
    "close questions",
  );
}

const selectRun = (id: string) => sql`SELECT ${wholeRun} WHERE id = ${id} AND ${isVisible}`;

/** The row of a run that only its owner may change. */
const owned = (id: string, fence: number) => sql`id = ${id} AND fence = ${fence} AND state = 'running'`;

const advance = prepared<"runId" | "fence" | "last" | "before" | "size">(
  (value) => sql`UPDATE ambit_runs SET events = ${value("last")}, size = size + ${value("size")}
    WHERE id = ${value("runId")} AND fence = ${value("fence")} AND state = 'running' AND events = ${value("before")}
    RETURNING id`,
);

/** The last event is this one only after that update, or after an earlier one whose response was lost. */
const addChunk = prepared<"runId" | "fence" | "last" | "first" | "text">(
  (value) => sql`INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
    SELECT id, CAST(${value("first")} AS BIGINT), events, CAST(${value("text")} AS TEXT) FROM ambit_runs
    WHERE id = ${value("runId")} AND fence = ${value("fence")} AND state = 'running' AND events = ${value("last")}
    ON CONFLICT (run_id, first_event) DO NOTHING RETURNING run_id`,
);

/** Adds a group of events to its run's log. */
async function appendGroup(database: Database, group: EventGroup): Promise<Written> {
  const { runId, fence, first, count, text, dropped } = group;
  const last = first + count - 1;
  const others = [...questionsOf(database, group), ...(dropped === undefined ? [] : [drop(group, dropped)])];
  if (others.length === 0 && database.append !== undefined) {
    const written = await database.append({ runId, fence, first, last, text });
    if (written) return "written";
  }
  const rows = await database.run([
    advance({ runId, fence, last, before: first - 1, size: text.length - (dropped?.characters ?? 0) }),
    addChunk({ runId, fence, last, first, text }),
    ...others,
    selectHead({ id: runId }),
  ]);
  if (rows[1]?.length === 1) return "written";
  const head = rows.at(-1)?.[0];
  return head !== undefined && isWritten(headOf(head), fence, last) ? "written" : "fenced";
}

function drop({ runId, fence }: EventGroup, { before }: NonNullable<EventGroup["dropped"]>): Statement {
  return statement(
    sql`DELETE FROM ambit_chunks WHERE run_id = ${runId} AND last_event < ${asInteger(before)}
    AND EXISTS (SELECT 1 FROM ambit_runs WHERE ${owned(runId, fence)})`,
  );
}

/** What these events ask, and whom they are sent to. */
function questionsOf(
  database: Database,
  { runId, fence, asked = [], withdrawn = [], deliveries = [] }: EventGroup,
): readonly Statement[] {
  const isOwned = owned(runId, fence);
  return [
    ...asked.map(({ id, kind, payload }) =>
      statement(
        sql`INSERT INTO ambit_interactions (id, run_id, project, session, kind, payload, state, created_at)
        SELECT ${asText(id)}, id, project, session, ${asText(kind)}, ${asText(payload)}, 'open', ${clock(database)}
        FROM ambit_runs WHERE ${isOwned} ON CONFLICT (id) DO NOTHING`,
      ),
    ),
    ...withdrawn.map((id) =>
      statement(
        sql`UPDATE ambit_interactions SET state = 'withdrawn' WHERE id = ${id} AND run_id = ${runId}
        AND state IN ${list(statesBefore("withdraw"))} AND EXISTS (SELECT 1 FROM ambit_runs WHERE ${isOwned})`,
      ),
    ),
    ...deliveries.map((delivery) => addDelivery(database, delivery, isOwned)),
  ];
}

/** Runs that aren't being deleted. */
const isVisible = sql`state <> 'deleted'`;

/** The state of a run, and the number of its last event. */
const selectHead = prepared<"id">(
  (value) => sql`SELECT id, state, fence, events FROM ambit_runs WHERE id = ${value("id")} AND ${isVisible}`,
  "head",
);

function isWritten(head: RunHead, fence: number, last: number): boolean {
  return head.fence === fence && head.state === "running" && head.events >= last;
}

const minute = constant(60_000);
const day = constant(dayMs);

/** The usage of projects, over all replicas. */
export function quotaRows(database: Database): Pick<Store, "createWithin" | "usage" | "createQueued"> {
  return {
    async createWithin(run, quota) {
      const { id, project = "" } = run;
      const rows = await database.run([
        // Until this is committed, no other replica counts.
        lockUsage(project),
        statement(createRun(database, run, isWithin(database, run.project, quota))),
        countStart(database, id, run.replica),
        statement(
          sql`DELETE FROM ambit_starts WHERE project = ${project} AND started_at <= ${clock(database)} - ${minute}`,
        ),
        ...announce(run),
        statement(sql`SELECT ${wholeRun} WHERE id = ${id} AND ${isVisible}`),
      ]);
      if (rows[1]?.length === 1) return undefined;
      const row = rows.at(-1)?.[0];
      return row === undefined ? "over_quota" : runOf(row);
    },

    async usage(projects) {
      if (projects.length === 0) return [];
      const now = clock(database);
      const among = sql`project IN ${list(projects)}`;
      const [running = [], starts = [], money = [], time = []] = await database.run([
        statement(
          sql`SELECT project, COUNT(*) AS runs FROM ambit_runs WHERE ${among} AND state = 'running' GROUP BY project`,
        ),
        statement(
          sql`SELECT project, COUNT(*) AS runs, MIN(started_at) + ${minute} - ${now} AS left_ms FROM ambit_starts
          WHERE ${among} AND started_at > ${now} - ${minute} GROUP BY project`,
        ),
        statement(sql`SELECT project, usd FROM ambit_usage WHERE ${among} AND day = ${today(now)}`),
        statement(sql`SELECT ${day} - ${now} % ${day} AS left_ms`),
      ]);
      const of = (rows: readonly Row[]) => new Map(rows.map((row) => [row.project, new Columns(row)]));
      const [runs, begun, spent] = [of(running), of(starts), of(money)];
      const [left] = time;
      return projects.map((project) => ({
        project,
        running: runs.get(project)?.number("runs") ?? 0,
        begun: begun.get(project)?.number("runs") ?? 0,
        minuteLeftMs: begun.get(project)?.number("left_ms") ?? 0,
        usd: spent.get(project)?.number("usd") ?? 0,
        dayLeftMs: left === undefined ? dayMs : new Columns(left).number("left_ms"),
      }));
    },

    async createQueued(run, limits) {
      const rows = await database.run([
        // Until this is committed, no other replica queues. Those that claim don't wait for it.
        lockUsage(everyProject),
        statement(createRun(database, run, hasRoom(run, limits))),
        ...announce(run),
        statement(sql`SELECT ${wholeRun} WHERE id = ${run.id} AND ${isVisible}`),
      ]);
      if (rows[1]?.length === 1) return undefined;
      const row = rows.at(-1)?.[0];
      return row === undefined ? "queue_full" : runOf(row);
    },
  };
}

/** No project has this name. */
const everyProject = "";

function isWithin(
  database: Pick<Database, "now">,
  project: string | undefined,
  { concurrentRuns, runsPerMinute, usdPerDay }: RunQuota,
): Sql {
  const now = clock(database);
  const of = sql`project = ${asText(project)}`;
  const conditions: Sql[] = [];
  if (concurrentRuns !== undefined)
    conditions.push(
      sql`(SELECT COUNT(*) FROM ambit_runs WHERE ${of} AND state = 'running') < ${constant(concurrentRuns)}`,
    );
  if (runsPerMinute !== undefined)
    conditions.push(
      sql`(SELECT COUNT(*) FROM ambit_starts WHERE ${of} AND started_at > ${now} - ${minute}) < ${constant(runsPerMinute)}`,
    );
  if (usdPerDay !== undefined)
    conditions.push(
      sql`COALESCE((SELECT usd FROM ambit_usage WHERE ${of} AND day = ${today(now)}), 0) < ${constant(usdPerDay)}`,
    );
  return all(conditions);
}

/** Whether the queue has room for a run. The queued runs of its project count twice: they leave as much free as they take. */
function hasRoom({ project, sealedRequest = "" }: NewRun, { queuedRuns, queuedBytes }: QueueLimits): Sql {
  const isOwn = sql`project = ${asText(project)}`;
  const bytes = sql`OCTET_LENGTH(sealed)`;
  return sql`EXISTS (SELECT 1 FROM (
      SELECT COUNT(*) + COUNT(CASE WHEN ${isOwn} THEN 1 END) AS runs,
        COALESCE(SUM(${bytes} + CASE WHEN ${isOwn} THEN ${bytes} ELSE 0 END), 0) AS bytes
      FROM ambit_runs WHERE state = 'queued') AS waiting
    WHERE runs < ${constant(queuedRuns)} AND bytes + ${asInteger(sealedRequest.length)} <= ${constant(queuedBytes)})`;
}
