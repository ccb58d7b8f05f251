import type { RunPlace } from "../server/client.js";

/** The two runs, as the address has them. */
export interface CompareSearch {
  readonly a?: string;
  readonly aProject?: string;
  readonly b?: string;
  readonly bProject?: string;
}

const names = ["a", "aProject", "b", "bProject"] as const;

export function readCompareSearch(search: Readonly<Record<string, unknown>>): CompareSearch {
  const texts = names.flatMap((name) => {
    const value = search[name];
    return typeof value === "string" && value !== ""
      ? [[name, value]]
      : typeof value === "number"
        ? [[name, String(value)]]
        : [];
  });
  return Object.fromEntries(texts);
}

export const placeOfA = ({ a, aProject }: CompareSearch) => placeOf(a, aProject);
export const placeOfB = ({ b, bProject }: CompareSearch) => placeOf(b, bProject);

const placeOf = (runId: string | undefined, projectId: string | undefined): RunPlace | undefined =>
  runId === undefined ? undefined : { runId, projectId };
