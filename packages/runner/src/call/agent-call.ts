import type { PublishedOutcome } from "@ambit/core/plugin";

/** One tool call of a run's agent, from its first report, question or execution until its result is reported. */
export interface AgentCall {
  /** The agent's id where it sends one, else ours. */
  readonly id: string;
  /** The id that the caller reads: the agent's, or the runner's for a call that its user is asked about. */
  readonly publicId: string;
  readonly name: string;
  /** Equal for calls with the same tool and arguments: see `callKey`. */
  readonly key: string;
  /** Whether the caller is owed a result: the agent reported the call, or the runner announced it. */
  readonly isReported: boolean;
  readonly announcement: Announcement;
  readonly state: CallState;
}

/**
 * What the caller has seen of a call. `none`: nothing yet · `held`: the agent's report waits for a decision ·
 * `released`: the agent's report is passed on immediately · `announced`: `tool_call` was sent · `awaited`: the runner
 * sent it, and the agent's own report is still to come.
 */
export type Announcement = "none" | "held" | "released" | "announced" | "awaited";

/** `taken`: the runner is deciding on this call, so no other is matched with it. */
type Pending = { readonly name: "pending"; readonly taken: boolean };
/** The agent asked before it called, and may call. `taken`: the call itself has reached the runner. */
type Allowed = { readonly name: "allowed"; readonly taken: boolean };
type Executing = { readonly name: "executing" };

/** A step in the life of a call. */
export type CallState =
  | Pending
  | Allowed
  | Executing
  /** The user was asked about it; `resumes` is the state in which it continues after the answer. */
  | { readonly name: "asked"; readonly resumes: Pending | Allowed | Executing }
  /** The user didn't answer in time: the turn pauses. */
  | { readonly name: "parked" }
  /** `outcome`: what the agent was sent, where the call reached the runner. */
  | { readonly name: "denied"; readonly outcome?: PublishedOutcome }
  | {
      readonly name: "finished";
      readonly outcome: PublishedOutcome;
      /** Data for the user interface, not for the model. */
      readonly data?: unknown;
    };

export type CallStep =
  /** The runner begins to decide on it: the agent asks, or calls. */
  | { readonly step: "take" }
  /** The decision was abandoned. */
  | { readonly step: "release" }
  | { readonly step: "ask" | "answer" | "park" | "allow" | "execute" }
  | { readonly step: "deny"; readonly outcome?: PublishedOutcome }
  | { readonly step: "finish"; readonly outcome: PublishedOutcome; readonly data?: unknown }
  /** There is no room to remember its outcome. */
  | { readonly step: "forget" };

/** The next state; undefined if the step isn't possible in this state. Pure. */
export function advance(state: CallState, step: CallStep): CallState | undefined {
  switch (state.name) {
    case "pending":
    case "allowed":
      return decide(state, step);
    case "asked":
      if (step.step === "answer") return state.resumes;
      return step.step === "park" ? { name: "parked" } : undefined;
    case "executing":
      if (step.step === "ask") return { name: "asked", resumes: state };
      if (step.step !== "finish") return undefined;
      return {
        name: "finished",
        outcome: step.outcome,
        ...(step.data === undefined ? {} : { data: step.data }),
      };
    case "denied":
    case "finished":
      // An agent may reuse an id.
      return step.step === "take" || step.step === "forget" ? { name: "pending", taken: true } : undefined;
    case "parked":
      return undefined;
  }
}

function decide(state: Pending | Allowed, step: CallStep): CallState | undefined {
  switch (step.step) {
    case "take":
      return state.taken ? undefined : { ...state, taken: true };
    case "release":
      return { ...state, taken: false };
    case "ask":
      return { name: "asked", resumes: state };
    case "allow":
      return { name: "allowed", taken: false };
    case "deny":
      return { name: "denied", ...(step.outcome === undefined ? {} : { outcome: step.outcome }) };
    case "execute":
      return { name: "executing" };
    case "forget":
      return state.name === "allowed" ? { name: "pending", taken: state.taken } : undefined;
    default:
      return undefined;
  }
}

/** Whether its result can only come from the user. Pure. */
export function waitsForUser({ name }: CallState): boolean {
  return name === "asked" || name === "parked";
}
