import {
  type Issue,
  isJsonObject,
  type MarkedValue,
  markedValues,
  runRequestSchema,
} from "@ambit/core/contract";

/** Headers, variables and credentials that a request brings: to read and search each takes longer than to parse it. */
const maxEntries = 2_000;

/** By field of a request, what its schema marks as secret in it. Of other fields nothing is marked. */
const markedIn = new Map(
  Object.entries(runRequestSchema.shape).map(([name, schema]) => [name, markedValues(schema)]),
);

/** The request without its fields that have secrets, where it has too many: nothing else is checked of them then. Pure. */
export function withinSecretRoom(request: unknown): { readonly body: unknown; readonly issues: Issue[] } {
  if (!isJsonObject(request)) return { body: request, issues: [] };
  let entries = 0;
  let exceeded: string | undefined;
  const having = new Set<string>();
  for (const [name, marked] of markedIn) {
    const count = marked(request[name]).reduce((sum, one) => sum + entriesIn(one), 0);
    if (count > 0) having.add(name);
    entries += count;
    if (entries > maxEntries) exceeded ??= name;
  }
  if (exceeded === undefined) return { body: request, issues: [] };
  const body = Object.fromEntries(Object.entries(request).filter(([name]) => !having.has(name)));
  const message = `makes more than ${maxEntries.toLocaleString("en")} headers, variables and credentials together: send fewer`;
  return { body, issues: [{ path: exceeded, message }] };
}

/** All headers of a field are one value. */
function entriesIn({ kind, value }: MarkedValue): number {
  if (kind === "url" || kind === "address") return 0;
  return isJsonObject(value) ? Object.keys(value).length : 1;
}
