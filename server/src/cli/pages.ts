import type { ServerClient } from "./server-client.js";

/** The largest page that a server gives. */
const largestPage = 1_000;

/** A list of a server, which it gives page by page. */
export interface PagedList<Row> {
  readonly path: string;
  /** What is listed. Default: everything. */
  readonly filter?: Readonly<Record<string, string | undefined>>;
  /** Rows of a page. Default: as many as a server gives. */
  readonly pageSize?: number;
  rowsOf(body: unknown): readonly Row[];
  idOf(row: Row): string;
}

/** Its pages, to the last one. A page may be shorter than asked for, so only an empty one is the end. */
export async function* pagesOf<Row>(
  client: Pick<ServerClient, "json">,
  { path, filter = {}, pageSize = largestPage, rowsOf, idOf }: PagedList<Row>,
): AsyncGenerator<readonly Row[]> {
  const query = new URLSearchParams({ limit: String(Math.min(pageSize, largestPage)) });
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
  for (;;) {
    const rows = rowsOf(await client.json("GET", `${path}?${query}`));
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    query.set("after", idOf(last));
  }
}

/** All of its rows. */
export async function allOf<Row>(
  client: Pick<ServerClient, "json">,
  list: PagedList<Row>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for await (const page of pagesOf(client, list)) rows.push(...page);
  return rows;
}
