import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from "kysely";
import type { Database, Essential, Row, Statement, Value } from "./database.js";

export { sql };

/** A statement, or a part of one, with its values in their places. */
export type Sql = RawBuilder<unknown>;

/** Kysely only compiles; each database runs statements in its own way. SQLite accepts PostgreSQL's placeholders too. */
const compiler = new Kysely<unknown>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (kysely) => new PostgresIntrospector(kysely),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
});

/** Compiles a query to SQL with placeholders. @param name for a statement that every run needs, with the same text each time */
export function statement(query: Sql, name?: string): Statement {
  const { sql: text, parameters } = query.compile(compiler);
  const values = parameters.map(toValue);
  return name === undefined ? { text, values } : { name, text, values };
}

/** Runs one statement. */
export async function rowsOf(
  database: Pick<Database, "run">,
  query: Sql,
  essential?: Essential,
): Promise<readonly Row[]> {
  const [rows = []] = await database.run([statement(query)], essential);
  return rows;
}

/**
 * A statement whose text is made once, for what runs do many times.
 * @param build gets the place of each value by its name.
 */
export function prepared<Name extends string>(
  build: (value: (name: Name) => Sql) => Sql,
  name?: string,
): (values: Readonly<Record<Name, Value>>) => Statement {
  const places: Name[] = [];
  const placed = build((name) => sql`${places.push(name)}`);
  const { sql: text, parameters } = placed.compile(compiler);
  // The number that stands for a value is its place, from 1.
  const order = parameters.flatMap((place) => (typeof place === "number" ? (places[place - 1] ?? []) : []));
  return (values) => {
    const ordered = order.map((name) => values[name]);
    return name === undefined ? { text, values: ordered } : { name, text, values: ordered };
  };
}

/** An absent value is NULL. */
function toValue(value: unknown): Value {
  if (typeof value === "string" || typeof value === "number") return value;
  if (value === undefined || value === null) return null;
  throw new TypeError(`a statement has a value of the type ${typeof value}`);
}

/** A value in a place where PostgreSQL can't infer its type. */
export const asText = (value: string | undefined): Sql => sql`CAST(${value} AS TEXT)`;
export const asInteger = (value: number): Sql => sql`CAST(${value} AS BIGINT)`;

/** A number in the text of a statement. */
export const constant = (value: number): Sql => sql.raw(String(value));

/** The clock's milliseconds since the epoch. */
export function clock({ now }: Pick<Database, "now">): Sql {
  return sql.raw(now);
}

/** Ends a SELECT that locks its rows. */
export function locking({ lock }: Pick<Database, "lock">): Sql {
  return sql.raw(lock);
}

/** Ends a SELECT that locks its rows and skips those that another transaction locks. */
export function lockSkipping({ lock }: Pick<Database, "lock">): Sql {
  return sql.raw(lock === "" ? "" : `${lock} SKIP LOCKED`);
}

/** `column = value` for each column: without those that are undefined; null is `IS NULL`. */
export function equal(columns: Readonly<Record<string, Value | undefined>>): readonly Sql[] {
  return Object.entries(columns).flatMap(([column, value]) => {
    if (value === undefined) return [];
    return [value === null ? sql`${sql.ref(column)} IS NULL` : sql`${sql.ref(column)} = ${value}`];
  });
}

/**
 * Rows of a table that were created before the row with this id; all if it is undefined. None if that row isn't there, or of another
 * project: an id must not show that another project has it.
 */
export function before(
  table: string,
  id: string | undefined,
  project: string | null | undefined,
): readonly Sql[] {
  if (id === undefined) return [];
  const last = all(equal({ id, project }));
  // Compared as a row, which an index over both columns answers by one range.
  return [sql`(created_at, id) < (SELECT created_at, id FROM ${sql.table(table)} WHERE ${last})`];
}

/** `a AND b` */
export function all(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`1 = 1` : sql.join(conditions, sql` AND `);
}

/** `(a, b)` */
export function list(values: readonly Value[]): Sql {
  return sql`(${sql.join(values)})`;
}
