import {
  type Agent,
  type AgentEvent,
  agentEventSchema,
  type PermissionDecision,
  type PermissionQuestion,
} from "@ambit/core/plugin";

export interface TurnOptions {
  readonly answer?: PermissionDecision;
  /** Called with each event as it comes. */
  readonly onEvent?: (event: AgentEvent) => void;
  readonly signal?: AbortSignal;
  readonly onQuestion?: (question: PermissionQuestion) => Promise<void>;
}

export interface TurnResult {
  readonly events: readonly AgentEvent[];
  readonly questions: readonly PermissionQuestion[];
  /** The error of the turn; undefined for one that ended normally. */
  readonly failure: unknown;
}

/** Runs one turn to its end. Every event is validated with the contract's schema. */
export async function runTurn(agent: Agent, text: string, options: TurnOptions = {}): Promise<TurnResult> {
  const events: AgentEvent[] = [];
  const questions: PermissionQuestion[] = [];
  const turn = {
    prompt: [{ type: "text" as const, text }],
    signal: options.signal ?? new AbortController().signal,
    onPermission: async (question: PermissionQuestion) => {
      questions.push(question);
      await options.onQuestion?.(question);
      return options.answer ?? "allow";
    },
  };
  try {
    for await (const event of agent.prompt(turn)) {
      events.push(agentEventSchema.parse(event));
      options.onEvent?.(event);
    }
  } catch (failure) {
    return { events, questions, failure };
  }
  return { events, questions, failure: undefined };
}
