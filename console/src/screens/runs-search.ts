export const shownStates = [
  "all",
  "queued",
  "running",
  "waiting",
  "failed",
  "completed",
  "cancelled",
] as const;
export type ShownState = (typeof shownStates)[number];

/** What of the list is shown, as the address has it. */
export interface RunsSearch {
  readonly show?: Exclude<ShownState, "all">;
  readonly agent?: string;
  readonly sandbox?: string;
  readonly session?: string;
  readonly project?: string;
}

const isShown = (value: unknown): value is Exclude<ShownState, "all"> =>
  value !== "all" && shownStates.some((state) => state === value);

const text = (value: unknown) =>
  typeof value === "string" && value !== "" ? value : typeof value === "number" ? String(value) : undefined;

export function readRunsSearch(search: Readonly<Record<string, unknown>>): RunsSearch {
  const { show } = search;
  const [agent, sandbox] = [text(search.agent), text(search.sandbox)];
  const [session, project] = [text(search.session), text(search.project)];
  return {
    ...(isShown(show) ? { show } : {}),
    ...(agent === undefined ? {} : { agent }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(session === undefined ? {} : { session }),
    ...(project === undefined ? {} : { project }),
  };
}
