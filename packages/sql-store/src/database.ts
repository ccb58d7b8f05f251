export type Value = string | number | null;
export type Row = Readonly<Record<string, unknown>>;

export interface Statement {
  /**
   * Names a statement that every run needs, so that a database may parse it once per connection. Only equal texts have equal
   * names. `SELECT *` must have none, since it fails once a newer version has added a column.
   */
  readonly name?: string;
  /** The SQL with `$1`, `$2`… as placeholders. */
  readonly text: string;
  readonly values?: readonly Value[];
}

/** The message of a StoreFailed for a full disk, or a quota that is used up. */
export const diskFull =
  "The disk of the store is full: delete runs (DELETE /runs/{runId}), or free room on it.";

/** What a full disk must not stop: keeping leases and ending runs, which writes little, and deletions. */
export type Essential = "end" | "delete";

/** What a store needs of a database: statements in the SQL that SQLite and PostgreSQL have in common. */
export interface Database {
  /** The clock's milliseconds since the epoch, as an expression. */
  readonly now: string;
  /** The end of a SELECT that locks its rows: ` FOR UPDATE`. */
  readonly lock: string;
  /** Whether a WITH may insert rows: then one statement can create a run with its first events. */
  readonly insertsInWith: boolean;
  /**
   * Runs all of them in one transaction, in order.
   * @param essential for these a database may keep room on its disk.
   * @returns the rows of each.
   */
  run(statements: readonly Statement[], essential?: Essential): Promise<readonly (readonly Row[])[]>;
  /** Runs an append without questions in one round trip, if the database can. False: not written. */
  append?(chunk: ChunkToAppend): Promise<boolean>;
  /**
   * Overwrites what was deleted in the copies that the database itself keeps, such as its log. False: others read it, so
   * call it again later. Absent: the database does that by itself, or can't.
   */
  scrub?(): Promise<boolean>;
  close(): Promise<void>;
}

export interface ChunkToAppend {
  readonly runId: string;
  readonly fence: number;
  readonly first: number;
  readonly last: number;
  readonly text: string;
}

/** Reads a row's columns. @throws Error for a column of another type: the schema differs. */
export class Columns {
  constructor(readonly row: Row) {}

  text(name: string): string {
    const value = this.row[name];
    if (typeof value === "string") return value;
    throw new Error(`The column ${name} holds ${typeof value} instead of text.`);
  }

  optionalText(name: string): string | undefined {
    return this.row[name] === null ? undefined : this.text(name);
  }

  number(name: string): number {
    const value = this.row[name];
    if (typeof value === "number") return value;
    throw new Error(`The column ${name} holds ${typeof value} instead of a number.`);
  }

  optionalNumber(name: string): number | undefined {
    return this.row[name] === null ? undefined : this.number(name);
  }

  optionalOneOf<Text extends string>(name: string, texts: readonly Text[]): Text | undefined {
    return this.row[name] === null ? undefined : this.oneOf(name, texts);
  }

  /** Reads a text column that has one of the given values. */
  oneOf<Text extends string>(name: string, texts: readonly Text[]): Text {
    const value = this.text(name);
    const knownText = texts.find((text) => text === value);
    if (knownText === undefined) throw new Error(`The column ${name} holds an unknown value.`);
    return knownText;
  }
}
