export const tabs = ["activity", "output", "files", "boundary", "terminal"] as const;
export type Tab = (typeof tabs)[number];

export interface RunSearch {
  readonly project?: string;
  readonly tab?: Exclude<Tab, "activity">;
}

const isTab = (value: unknown): value is Exclude<Tab, "activity"> =>
  value !== "activity" && tabs.some((name) => name === value);

export function readRunSearch(search: Readonly<Record<string, unknown>>): RunSearch {
  const { project, tab } = search;
  return {
    ...(typeof project === "string" && project !== "" ? { project } : {}),
    ...(isTab(tab) ? { tab } : {}),
  };
}
