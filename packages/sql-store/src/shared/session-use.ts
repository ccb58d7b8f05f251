import type { SessionName, SessionUse } from "@ambit/durable/store";
import { dayMs } from "../counting.js";
import { Columns, type Database, type Statement, statement } from "../database.js";

const figures = ["requests", "input", "cached", "output", "usd", "granted"] as const;

/** The usage of models by sessions. */
export class SessionUses {
  constructor(readonly database: Database) {}

  async keep(
    { project = "", session }: SessionName,
    { requests, input, cached, output, usd, granted, isPriced }: SessionUse,
  ): Promise<SessionUse> {
    const { now } = this.database;
    const larger = figures.map((name) => {
      const [one, other] = [`excluded.${name}`, `ambit_spending.${name}`];
      return `${name} = CASE WHEN ${one} > ${other} THEN ${one} ELSE ${other} END`;
    });
    const [[row = {}] = []] = await this.database.run([
      statement(
        `INSERT INTO ambit_spending (project, session, ${figures.join(", ")}, is_priced, used_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ${now}) ON CONFLICT (project, session) DO UPDATE
        SET ${larger.join(", ")}, used_at = excluded.used_at,
          is_priced = CASE WHEN excluded.is_priced = 0 THEN 0 ELSE ambit_spending.is_priced END RETURNING *`,
        ...[project, session, requests, input, cached, output, usd, granted, isPriced ? 1 : 0],
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
export function forgetUse({ now }: Pick<Database, "now">): Statement {
  return { text: `DELETE FROM ambit_spending WHERE used_at < ${now} - ${dayMs}` };
}
