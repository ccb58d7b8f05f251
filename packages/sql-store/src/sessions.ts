import type { Store } from "@ambit/durable/store";
import { dayMs, lockUsage } from "./counts.js";
import { Columns, type Database, type Statement } from "./database.js";
import { all, asText, clock, constant, equal, locking, type Sql, sql, statement } from "./query.js";
import { sessionOf } from "./rows.js";

/** Whether the replica in a table's row has a valid lease. */
export function lives(database: Pick<Database, "now">, table: string): Sql {
  return sql`EXISTS (SELECT 1 FROM ambit_replicas p
    WHERE p.id = ${sql.ref(`${table}.replica`)} AND p.expires_at > ${clock(database)})`;
}

/** A run of the session is in progress at its owner. */
const isInUse = sql`EXISTS (SELECT 1 FROM ambit_runs r WHERE r.state = 'running' AND r.session = ambit_sessions.session
  AND COALESCE(r.project, '') = ambit_sessions.project AND r.replica = ambit_sessions.replica)`;

/** A run has the session of a queued run in a row of `ambit_runs`. */
export const isBusy = sql`EXISTS (SELECT 1 FROM ambit_runs r WHERE r.state = 'running' AND r.session = ambit_runs.session
  AND COALESCE(r.project, '') = COALESCE(ambit_runs.project, ''))`;

/** Another living replica has the session, and would keep it. */
const isKept = (database: Pick<Database, "now">) =>
  sql`${lives(database, "ambit_sessions")} AND (ambit_sessions.handover IS NULL OR ${isInUse})`;

/** Whether another replica than this one keeps the session of a row of `ambit_runs`. */
export function isElsewhere(database: Pick<Database, "now">, replica: string): Sql {
  return sql`EXISTS (SELECT 1 FROM ambit_sessions WHERE ambit_sessions.project = COALESCE(ambit_runs.project, '')
    AND ambit_sessions.session = ambit_runs.session AND ambit_sessions.replica <> ${replica} AND ${isKept(database)})`;
}

/** Named sessions, and the replica that has each. */
export function sessionRows(
  database: Database,
): Pick<Store, "holdSession" | "keepSession" | "releaseSession" | "endSession" | "sessions" | "keepUse"> {
  const holdSession: Store["holdSession"] = async (place, maxOpen) => {
    const { project = "", session, replica, sandbox } = place;
    const now = clock(database);
    const names = [project, session, replica, sandbox].map(asText);
    const room = hasRoom(database, project, session, maxOpen);
    const rows = await database.run([
      // Until this is committed, no other replica counts.
      ...(maxOpen === undefined ? [] : [lockUsage(project)]),
      statement(
        sql`SELECT replica FROM ambit_sessions WHERE ${all(equal({ project, session }))} AND handover IS NULL
        AND remains IS NULL AND replica <> '' AND replica <> ${asText(replica)}`,
      ),
      statement(sql`SELECT 1 AS room WHERE ${room}`),
      statement(
        sql`INSERT INTO ambit_sessions (project, session, replica, sandbox, fence, created_at, used_at)
        SELECT ${sql.join(names)}, 1, ${now}, ${now} WHERE ${room} ON CONFLICT (project, session) DO UPDATE
        SET used_at = excluded.used_at, sandbox = excluded.sandbox, replica = excluded.replica,
          fence = ambit_sessions.fence + CASE WHEN ambit_sessions.replica = excluded.replica THEN 0 ELSE 1 END
        WHERE ambit_sessions.replica = excluded.replica OR NOT (${isKept(database)})`,
      ),
      statement(
        sql`SELECT s.replica, s.fence, COALESCE(s.handover, s.remains) AS handover, p.address
        FROM ambit_sessions s LEFT JOIN ambit_replicas p ON p.id = s.replica
        WHERE s.project = ${project} AND s.session = ${session}`,
      ),
    ]);
    if (rows.at(-3)?.length === 0) return "over_quota";
    const [row] = rows.at(-1) ?? [];
    // Another request ended it at the same moment.
    if (row === undefined) return holdSession(place, maxOpen);
    const columns = new Columns(row);
    if (row.replica !== replica) return { held: false, address: columns.optionalText("address") ?? "" };
    const handover = columns.optionalText("handover");
    const isAbandoned = rows.at(-4)?.length === 1;
    return {
      held: true,
      fence: columns.number("fence"),
      handover,
      ...(isAbandoned ? { isAbandoned } : {}),
    };
  };

  return {
    holdSession,

    async keepSession({ project = "", session, replica }, fence, sealed, when = "idle") {
      const [handover, remains] = when === "idle" ? [sealed, undefined] : [undefined, sealed];
      const [updated] = await database.run([
        statement(
          sql`UPDATE ambit_sessions SET handover = ${handover}, remains = ${remains}
          WHERE ${all(equal({ project, session, replica, fence }))} RETURNING session`,
        ),
      ]);
      return updated?.length === 1 ? "written" : "fenced";
    },

    async releaseSession({ project = "", session, replica }, handover) {
      const isOwn = all(equal({ project, session, replica }));
      const query =
        handover === undefined
          ? sql`DELETE FROM ambit_sessions WHERE ${isOwn}`
          : sql`UPDATE ambit_sessions SET replica = '', handover = ${handover}, remains = NULL WHERE ${isOwn}`;
      await database.run([statement(query)], "end");
    },

    /** The row stays, without an owner: if the earlier owner is still alive, its fence is too low. */
    async endSession({ project = "", session }) {
      const abandoned = sql`project = ${project} AND session = ${session}
        AND (replica <> '' OR handover IS NOT NULL) AND NOT ${lives(database, "ambit_sessions")}`;
      const [[before] = [], [ended] = []] = await database.run(
        [
          statement(sql`SELECT COALESCE(handover, remains) AS handover FROM ambit_sessions
            WHERE ${abandoned}${locking(database)}`),
          statement(
            sql`UPDATE ambit_sessions SET replica = '', handover = NULL, remains = NULL, fence = fence + 1
            WHERE ${abandoned} RETURNING fence`,
          ),
        ],
        "end",
      );
      if (before === undefined || ended === undefined) return undefined;
      const handover = new Columns(before).optionalText("handover");
      return { fence: new Columns(ended).number("fence"), handover };
    },

    async sessions(query) {
      const project = query.project === null ? "" : query.project;
      const [rows = []] = await database.run([
        statement(
          sql`SELECT s.project, s.session, s.sandbox, s.replica, s.created_at, s.used_at, p.address
          FROM ambit_sessions s
          JOIN ambit_replicas p ON p.id = s.replica AND p.expires_at > ${clock(database)}
          WHERE ${all(equal({ project }))} ORDER BY s.used_at DESC LIMIT ${query.limit}`,
        ),
      ]);
      return rows.map(sessionOf);
    },

    async keepUse({ project = "", session }, use) {
      const larger = figures.map((name) => {
        const [column, added] = [sql.ref(name), sql.ref(`excluded.${name}`)];
        const current = sql.ref(`ambit_spending.${name}`);
        return sql`${column} = CASE WHEN ${added} > ${current} THEN ${added} ELSE ${current} END`;
      });
      const [[row = {}] = []] = await database.run([
        statement(
          sql`INSERT INTO ambit_spending (project, session, ${sql.join(figures.map((name) => sql.ref(name)))},
            is_priced, used_at)
          VALUES (${project}, ${session}, ${sql.join(figures.map((name) => use[name]))},
            ${use.isPriced ? 1 : 0}, ${clock(database)}) ON CONFLICT (project, session) DO UPDATE
          SET ${sql.join(larger)}, used_at = excluded.used_at,
            is_priced = CASE WHEN excluded.is_priced = 0 THEN 0 ELSE ambit_spending.is_priced END RETURNING *`,
        ),
      ]);
      const columns = new Columns(row);
      return {
        requests: columns.number("requests"),
        input: columns.number("input"),
        cached: columns.number("cached"),
        output: columns.number("output"),
        usd: columns.number("usd"),
        granted: columns.number("granted"),
        isPriced: columns.number("is_priced") === 1,
      };
    },
  };
}

/** Whether it is open already, or may be opened. */
function hasRoom(
  database: Pick<Database, "now">,
  project: string,
  session: string,
  maxOpen: number | undefined,
): Sql {
  if (maxOpen === undefined) return all([]);
  const open = sql`FROM ambit_sessions WHERE project = ${project} AND ${lives(database, "ambit_sessions")}`;
  return sql`(EXISTS (SELECT 1 ${open} AND session = ${session}) OR (SELECT COUNT(*) ${open}) < ${constant(maxOpen)})`;
}

const figures = ["requests", "input", "cached", "output", "usd", "granted"] as const;

/** Deletes counts that were last used more than a day ago. */
export function forgetUse(database: Pick<Database, "now">): Statement {
  return statement(sql`DELETE FROM ambit_spending WHERE used_at < ${clock(database)} - ${constant(dayMs)}`);
}
