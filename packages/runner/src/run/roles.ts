import type { AmbitError } from "@ambit/core";
import type { ContentBlock, ForkReceipt, OutputsReceipt } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { TurnEnding } from "../call/reports/approved-calls.js";
import type { RunEvents } from "../events/run-events.js";
import type { Deadlines } from "../lifetime/deadlines.js";
import type { RightToAct } from "../lifetime/right-to-act.js";
import type { FilledWorkspace } from "../operator.js";
import type { AgentStarter } from "../session/agent/start-agent.js";
import type { Session } from "../session/session.js";
import type { Sessions } from "../session/sessions.js";
import type { StartedAgent } from "../session/started-agent.js";
import { token } from "../tokens.js";
import type { TurnEnd } from "./run-state.js";

/** The run's tool calls and its questions to the user. */
export interface CallsOfRun {
  /** Names the run in the ids of its questions; its session, where the request names none. */
  readonly turn: string;
  /** Whether the turn waits for its user. */
  readonly isPaused: boolean;
  /** Reads the answers that the request brings. @throws StoreFailed */
  begin(): Promise<void>;
  /** A live answer. @throws NotFound, RequestInvalid */
  answer(interactionId: string, body: unknown): void;
  turnEnded(ending: TurnEnding): void;
  /** The run is over: ends the calls that wait for the user, and settles the answers that it used. */
  end(): Promise<void>;
}

/** The agent's turn. */
export interface AgentTurn {
  /** Whether the agent wasn't prompted, or ended its turn itself, as after a cancel in time. It can then take another turn. */
  readonly agentIsIdle: boolean;
  /** From now on until the run closes, what the agent asks and calls is this run's. @throws PluginBrokeContract */
  serve(started: StartedAgent, sandbox: Sandbox): void;
  /** Prompts the agent and passes its events on. @throws whatever ended the turn early */
  run(started: StartedAgent, prompt: readonly ContentBlock[]): Promise<TurnEnd>;
  /** An error of the turn, with its real cause where that is known. */
  explained(error: AmbitError): AmbitError;
  /** The layer that a new sandbox can begin with, by its name. Undefined: it begins empty. @throws the run's reason */
  layer(): Promise<string | undefined>;
  /** Fills a new workspace. @throws SourceFailed, SetupFailed, SnapshotFailed, SandboxFailed; the run's reason */
  fill(session: Session): Promise<void>;
  /** What its session began as a copy of. */
  readonly forkedFrom: ForkReceipt | undefined;
  /** What it was filled with. */
  readonly filledWith: FilledWorkspace;
  /** Whether the request asks for files of the workspace. */
  readonly hasOutputs: boolean;
  /** What left the workspace. */
  readonly outputs: OutputsReceipt | undefined;
  /** The workspace is as Ambit filled it. @throws OutputsFailed; the run's reason when it was aborted */
  filled(sandbox: Sandbox): Promise<void>;
  /** Takes the outputs out and sends what is left once the turn has ended. @returns how it ended now */
  finish(end: TurnEnd): Promise<TurnEnd>;
}

/** The public part of a class: whatever has it can take the class's place. */
type Public<Class> = Pick<Class, keyof Class>;

export type TimeLimits = Pick<Deadlines, "admitted" | "starting">;
export type RightOfRun = Public<RightToAct>;
export type EventsOfRun = Public<RunEvents>;
export type SessionSource = Pick<Sessions, "borrow" | "keeps">;
export type AgentSource = Pick<AgentStarter, "start" | "claim" | "whyLate">;

/** What a run needs of others, by name. `containers.ts` says which class has which role; a test can register another. */
export const roles = {
  deadlines: token<TimeLimits>("deadlines"),
  right: token<RightOfRun>("right"),
  events: token<EventsOfRun>("events"),
  sessions: token<SessionSource>("sessions"),
  agents: token<AgentSource>("agents"),
  calls: token<CallsOfRun>("calls"),
  turn: token<AgentTurn>("turn"),
} as const;
