import type { Mechanism } from "../mechanisms.js";

interface AttemptTraits {
  /**
   * The mechanisms that it tries; none if it only tells a fact. Its control is the same attempt where the mechanism is missing:
   * as a plain process, in a sandbox without limits, or on what its own process has.
   */
  readonly against: readonly Mechanism[];
  /** `alone`: it uses up a limit, or may end its process, so other attempts in the same program would suffer. */
  readonly cost: "cheap" | "alone";
  /** What it can't be made without. */
  readonly needs?: string;
}

const fact = { against: [], cost: "cheap" } as const satisfies AttemptTraits;
const limit = { against: ["limits"], cost: "alone" } as const satisfies AttemptTraits;

/** The attempts of `inside/look.cjs` and `inside/reach.cjs`, by the name that `try` takes. */
export const attempts = {
  connect: { against: ["network namespace", "allowlist"], cost: "cheap" },
  local: { against: ["network namespace"], cost: "cheap", needs: "an abstract socket of this host" },
  passed: { against: ["allowlist"], cost: "cheap", needs: "the runner's proxy" },
  proxied: { against: ["network namespace", "allowlist"], cost: "cheap", needs: "the runner's proxy" },
  send: { against: ["credential broker"], cost: "cheap", needs: "the runner's proxy" },
  resolve: { against: ["network namespace"], cost: "cheap" },
  answer: { against: ["network namespace", "allowlist"], cost: "cheap" },
  datagram: { against: ["network namespace", "allowlist"], cost: "cheap", needs: "a resolver that answers" },
  query: { against: ["network namespace", "allowlist"], cost: "cheap", needs: "name servers" },
  gateway: { against: ["network namespace", "allowlist"], cost: "cheap", needs: "a default route" },
  address6: { against: ["network namespace", "allowlist"], cost: "cheap" },
  links: { against: ["network namespace"], cost: "cheap" },
  router: fact,
  read: { against: ["hidden host files"], cost: "cheap" },
  write: { against: ["hidden host files", "workspace mode", "ipc namespace"], cost: "cheap" },
  remove: fact,
  openToWrite: { against: ["hidden host files", "workspace mode"], cost: "cheap" },
  belowMounts: { against: ["hidden host files", "session separation"], cost: "cheap" },
  remount: { against: ["workspace mode"], cost: "cheap" },
  scratch: { against: ["private scratch", "session separation"], cost: "cheap" },
  ownScratch: fact,
  holding: { against: ["private scratch", "credential broker"], cost: "cheap" },
  exists: { against: ["covered kernel tables"], cost: "cheap" },
  list: { against: ["hidden host files"], cost: "cheap" },
  arguments: {
    against: ["pid namespace", "user namespace", "session separation", "credential broker"],
    cost: "cheap",
  },
  environment: {
    against: ["pid namespace", "user namespace", "session separation", "credential broker"],
    cost: "cheap",
  },
  environments: { against: ["cleared environment", "credential broker"], cost: "cheap" },
  ownEnvironment: { against: ["cleared environment", "credential broker"], cost: "cheap" },
  names: { against: ["cleared environment"], cost: "cheap" },
  own: { against: ["no new privileges", "pid namespace"], cost: "cheap" },
  machine: fact,
  kernel: fact,
  run: {
    against: ["system call filter", "refusal of nested user namespaces", "ipc namespace"],
    cost: "alone",
    needs: "a program in the workspace",
  },
  memory: limit,
  processes: limit,
  cpu: limit,
  disk: limit,
} as const satisfies Readonly<Record<string, AttemptTraits>>;

export type AttemptName = keyof typeof attempts;

/** The attempts that try a mechanism. */
export type AttemptAgainst<Wanted extends Mechanism> = {
  [Name in AttemptName]: Wanted extends (typeof attempts)[Name]["against"][number] ? Name : never;
}[AttemptName];

/** What to try, by an id for the outcome. Besides `try` it has the attempt's own parameters. */
export type Attempts<Name extends AttemptName = AttemptName> = Readonly<
  Record<string, { readonly try: Name } & Readonly<Record<string, unknown>>>
>;

/** What was reached, by id; null if it was refused. */
export type Reached = Readonly<Record<string, string | null>>;

export const isCostly = (asked: Attempts) =>
  Object.values(asked).some((one) => attempts[one.try].cost === "alone");

/** What was reached, for messages; empty for nothing. */
export const reachedOf = (seen: Reached) =>
  Object.entries(seen)
    .filter(([, what]) => what !== null)
    .map(([id, what]) => `${id} (${what?.slice(0, 60)})`)
    .join(", ");
