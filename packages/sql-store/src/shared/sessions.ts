import type { SessionHold, SessionName, SessionPlace, StoredSession, Written } from "@ambit/durable/store";
import { Columns, type Database, statement } from "../database.js";
import { sessionOf } from "../rows.js";
import { Where } from "../where.js";
import { lives } from "./lease.js";

/** A run of the session is in progress at its owner. */
const isInUse = `EXISTS (SELECT 1 FROM ambit_runs r WHERE r.state = 'running' AND r.session = ambit_sessions.session
  AND COALESCE(r.project, '') = ambit_sessions.project AND r.replica = ambit_sessions.replica)`;

/** Named sessions, and the replica that has each. */
export class Sessions {
  constructor(readonly database: Database) {}

  async hold({ project = "", session, replica, sandbox }: SessionPlace): Promise<SessionHold> {
    const { now } = this.database;
    const [, found] = await this.database.run([
      statement(
        `INSERT INTO ambit_sessions (project, session, replica, sandbox, fence, created_at, used_at)
        VALUES ($1, $2, $3, $4, 1, ${now}, ${now}) ON CONFLICT (project, session) DO UPDATE
        SET used_at = excluded.used_at, sandbox = excluded.sandbox, replica = excluded.replica,
          fence = ambit_sessions.fence + CASE WHEN ambit_sessions.replica = excluded.replica THEN 0 ELSE 1 END
        WHERE ambit_sessions.replica = excluded.replica OR NOT ${lives(this.database, "ambit_sessions")}
          OR (ambit_sessions.handover IS NOT NULL AND NOT ${isInUse})`,
        ...[project, session, replica, sandbox],
      ),
      statement(
        `SELECT s.replica, s.fence, s.handover, p.address
        FROM ambit_sessions s LEFT JOIN ambit_replicas p ON p.id = s.replica
        WHERE s.project = $1 AND s.session = $2`,
        ...[project, session],
      ),
    ]);
    const [row] = found ?? [];
    // Another request ended it at the same moment.
    if (row === undefined) return this.hold({ project, session, replica, sandbox });
    const columns = new Columns(row);
    if (row.replica !== replica) return { held: false, address: columns.optionalText("address") ?? "" };
    const handover = columns.optionalText("handover");
    return { held: true, fence: columns.number("fence"), ...(handover === undefined ? {} : { handover }) };
  }

  async keep(
    { project = "", session, replica }: SessionPlace,
    fence: number,
    handover: string | undefined,
  ): Promise<Written> {
    const [kept] = await this.database.run([
      statement(
        `UPDATE ambit_sessions SET handover = $5
        WHERE project = $1 AND session = $2 AND replica = $3 AND fence = $4 RETURNING session`,
        ...[project, session, replica, fence, handover],
      ),
    ]);
    return kept?.length === 1 ? "written" : "fenced";
  }

  async release({ project = "", session, replica }: SessionPlace): Promise<void> {
    await this.database.run(
      [
        statement(
          "DELETE FROM ambit_sessions WHERE project = $1 AND session = $2 AND replica = $3",
          ...[project, session, replica],
        ),
      ],
      "end",
    );
  }

  /** The row stays, without an owner: if the earlier owner is still alive, its fence is too low. */
  async end({
    project = "",
    session,
  }: SessionName): Promise<{ fence: number; handover?: string } | undefined> {
    const abandoned = `project = $1 AND session = $2 AND replica <> '' AND NOT ${lives(this.database, "ambit_sessions")}`;
    const [[before] = [], [ended] = []] = await this.database.run(
      [
        statement(
          `SELECT handover FROM ambit_sessions WHERE ${abandoned}${this.database.lock}`,
          project,
          session,
        ),
        statement(
          `UPDATE ambit_sessions SET replica = '', handover = NULL, fence = fence + 1
        WHERE ${abandoned} RETURNING fence`,
          ...[project, session],
        ),
      ],
      "end",
    );
    if (before === undefined || ended === undefined) return undefined;
    const handover = new Columns(before).optionalText("handover");
    return { fence: new Columns(ended).number("fence"), ...(handover === undefined ? {} : { handover }) };
  }

  async list(query: {
    readonly project?: string | null;
    readonly limit: number;
  }): Promise<readonly StoredSession[]> {
    const where = new Where().equals("project", query.project === null ? "" : query.project);
    const max = where.value(query.limit);
    const [rows = []] = await this.database.run([
      {
        text: `SELECT s.project, s.session, s.sandbox, s.replica, s.created_at, s.used_at, p.address FROM ambit_sessions s JOIN ambit_replicas p ON p.id = s.replica AND
        p.expires_at > ${this.database.now} ${where} ORDER BY s.used_at DESC LIMIT ${max}`,
        values: where.values,
      },
    ]);
    return rows.map(sessionOf);
  }
}
