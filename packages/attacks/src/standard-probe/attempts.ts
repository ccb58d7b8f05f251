/** The attempts of `inside/look.cjs`, by id. */
export type Attempts = Readonly<Record<string, { readonly try: string } & Readonly<Record<string, unknown>>>>;

/** What was reached, by id; null if it was refused. */
export type Reached = Readonly<Record<string, string | null>>;

/** They use up a limit, or may end their process: other attempts in the same program would suffer. */
const costly = new Set(["memory", "processes", "cpu", "disk", "run"]);

export const isCostly = (attempts: Attempts) => Object.values(attempts).some((one) => costly.has(one.try));

/** What was reached, for messages; empty for nothing. */
export const reachedOf = (seen: Reached) =>
  Object.entries(seen)
    .filter(([, what]) => what !== null)
    .map(([id, what]) => `${id} (${what?.slice(0, 60)})`)
    .join(", ");
