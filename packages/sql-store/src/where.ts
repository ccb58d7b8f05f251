import type { Value } from "./database.js";

/** Combined conditions, each with its value. */
export class Where {
  readonly #conditions: string[] = [];
  readonly values: Value[] = [];

  /** `column = value`; nothing for undefined, `IS NULL` for null. */
  equals(column: string, value: Value | undefined): this {
    if (value === undefined) return this;
    if (value === null) this.#conditions.push(`${column} IS NULL`);
    else this.#conditions.push(`${column} = ${this.value(value)}`);
    return this;
  }

  /** `column <> value` */
  isNot(column: string, value: Value): this {
    this.#conditions.push(`${column} <> ${this.value(value)}`);
    return this;
  }

  /** Rows of `table` that were created before the row with this id. */
  before(table: string, id: string | undefined): this {
    if (id === undefined) return this;
    const place = this.value(id);
    // Compared as a row, which an index over both columns answers by one range.
    this.#conditions.push(`(created_at, id) < (SELECT created_at, id FROM ${table} WHERE id = ${place})`);
    return this;
  }

  /** The placeholder of one more value. */
  value(value: Value): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  toString(): string {
    return this.#conditions.length === 0 ? "" : `WHERE ${this.#conditions.join(" AND ")}`;
  }
}
