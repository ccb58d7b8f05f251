import type { EventGroup, RunHead, Written } from "@ambit/durable/store";
import { type Database, named, type Statement, statement } from "../database.js";
import { headOf } from "../rows.js";
import { addDelivery } from "../shared/deliveries.js";

/** Rows that only the owner may change. */
export const owned = "id = $1 AND fence = $2 AND state = 'running'";

/** Adds a group of events to its run's log. */
export async function appendGroup(database: Database, group: EventGroup): Promise<Written> {
  const { runId, fence, first, count, text } = group;
  const last = first + count - 1;
  const others = questionsOf(database, group);
  if (others.length === 0 && database.append !== undefined) {
    const written = await database.append({ runId, fence, first, last, text });
    if (written) return "written";
  }
  const rows = await database.run([
    statement(
      `UPDATE ambit_runs SET events = $3, size = size + $4 WHERE ${owned} AND events = $5 RETURNING id`,
      ...[runId, fence, last, text.length, first - 1],
    ),
    // The last event is this one only after that update, or after an earlier one whose response was lost.
    statement(
      `INSERT INTO ambit_chunks (run_id, first_event, last_event, body)
      SELECT id, CAST($4 AS BIGINT), events, CAST($5 AS TEXT) FROM ambit_runs WHERE ${owned} AND events = $3
      ON CONFLICT (run_id, first_event) DO NOTHING RETURNING run_id`,
      ...[runId, fence, last, first, text],
    ),
    ...others,
    selectHead(runId),
  ]);
  if (rows[1]?.length === 1) return "written";
  const head = rows.at(-1)?.[0];
  return head !== undefined && isWritten(headOf(head), fence, last) ? "written" : "fenced";
}

/** What these events ask and answer, and whom they are sent to. */
function questionsOf(
  database: Database,
  { runId, fence, asked = [], answered = [], deliveries = [] }: EventGroup,
): readonly Statement[] {
  return [
    ...asked.map(({ id, kind, payload }) =>
      statement(
        `INSERT INTO ambit_interactions (id, run_id, project, session, kind, payload, state, created_at)
        SELECT CAST($3 AS TEXT), id, project, session, CAST($4 AS TEXT), CAST($5 AS TEXT), 'open', ${database.now}
        FROM ambit_runs WHERE ${owned} ON CONFLICT (id) DO NOTHING`,
        ...[runId, fence, id, kind, payload],
      ),
    ),
    ...answered.map((id) =>
      statement(
        "UPDATE ambit_interactions SET state = 'used', answer = NULL WHERE id = $1 AND state <> 'expired'",
        id,
      ),
    ),
    ...deliveries.map((one) => addDelivery(database, one, owned, runId, fence)),
  ];
}

/** Runs that aren't being deleted. */
export const isVisible = "state <> 'deleted'";

/** Where a run's log is. */
export const selectHead = (id: string) =>
  named(
    "head",
    statement(`SELECT id, state, fence, events FROM ambit_runs WHERE id = $1 AND ${isVisible}`, id),
  );

function isWritten(head: RunHead, fence: number, last: number): boolean {
  return head.fence === fence && head.state === "running" && head.events >= last;
}
