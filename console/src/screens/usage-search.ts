export const ranges = [7, 30, 90, 365] as const;
export type Range = (typeof ranges)[number];

export type GroupedBy = "day" | "project" | "harness" | "model";
export const groupings: readonly (readonly [GroupedBy, string])[] = [
  ["project", "Project"],
  ["harness", "Agent"],
  ["model", "Model"],
  ["day", "Day"],
];

/** Which days are shown, and how, as the address has it. Without a first or last day: the last 30. */
export interface UsageSearch {
  readonly days?: Range;
  readonly from?: string;
  readonly to?: string;
  readonly by?: GroupedBy;
  readonly project?: string;
}

const dayMs = 86_400_000;
/** The server answers for at most this many days. */
const maxDays = 400;

const isDay = (value: unknown): value is string =>
  typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value));

export function readUsageSearch(search: Readonly<Record<string, unknown>>): UsageSearch {
  const { from, to, project } = search;
  const days = ranges.find((range) => range === Number(search.days));
  const by = groupings.find(([name]) => name === search.by)?.[0];
  return {
    ...(days === undefined ? {} : { days }),
    ...(isDay(from) ? { from } : {}),
    ...(isDay(to) ? { to } : {}),
    ...(by === undefined ? {} : { by }),
    ...(project === undefined || project === "" ? {} : { project: String(project) }),
  };
}

const dayAt = (time: number) => new Date(time).toISOString().slice(0, "2026-11-29".length);

/** The first and the last day, in an order and a number that a server answers for. Pure. */
export function rangeOf({ days = 30, from, to }: UsageSearch, now: number): { from: string; to: string } {
  const last = Date.parse(to ?? dayAt(now));
  const first = from === undefined ? last - (days - 1) * dayMs : Date.parse(from);
  return { from: dayAt(Math.min(last, Math.max(first, last - (maxDays - 1) * dayMs))), to: dayAt(last) };
}

/** Every day of a range, the first and the last included. Pure. */
export function daysIn({ from, to }: { readonly from: string; readonly to: string }): readonly string[] {
  const count = (Date.parse(to) - Date.parse(from)) / dayMs + 1;
  return Array.from({ length: count }, (_, index) => dayAt(Date.parse(from) + index * dayMs));
}
