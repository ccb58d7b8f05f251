import type { SessionUse, StoredSessionName } from "@ambit/durable/store";
import { dayMs } from "../counting.js";
import { Columns, type Database, type Statement } from "../database.js";
import { clock, constant, sql, statement } from "../query.js";

const figures = ["requests", "input", "cached", "output", "usd", "granted"] as const;

/** The usage of models by sessions. */
export class SessionUses {
  constructor(readonly database: Database) {}

  async keep({ project = "", session }: StoredSessionName, use: SessionUse): Promise<SessionUse> {
    const larger = figures.map((name) => {
      const [column, one] = [sql.ref(name), sql.ref(`excluded.${name}`)];
      const other = sql.ref(`ambit_spending.${name}`);
      return sql`${column} = CASE WHEN ${one} > ${other} THEN ${one} ELSE ${other} END`;
    });
    const [[row = {}] = []] = await this.database.run([
      statement(
        sql`INSERT INTO ambit_spending (project, session, ${sql.join(figures.map((name) => sql.ref(name)))},
          is_priced, used_at)
        VALUES (${project}, ${session}, ${sql.join(figures.map((name) => use[name]))},
          ${use.isPriced ? 1 : 0}, ${clock(this.database)}) ON CONFLICT (project, session) DO UPDATE
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
  }
}

/** Deletes counts that were last used more than a day ago. */
export function forgetUse(database: Pick<Database, "now">): Statement {
  return statement(sql`DELETE FROM ambit_spending WHERE used_at < ${clock(database)} - ${constant(dayMs)}`);
}
