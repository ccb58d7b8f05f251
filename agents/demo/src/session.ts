import type { McpServer } from "@agentclientprotocol/sdk/unstable";
import type { Step } from "./grammar.js";
import type { History } from "./sessions.js";
import { SessionTools } from "./tools.js";

/** The state of an ACP session while it is open on this connection. */
export class DemoSession {
  readonly id: string;
  /** Where commands run and relative paths start; absolute. */
  readonly cwd: string;
  readonly history: History;
  readonly tools: SessionTools;
  /** "Always" answers to permission questions, by the tool call's title. */
  readonly answers = new Map<string, string>();
  /** The steps of the last script from the one on during which its turn was cancelled. Empty where it came to its end. */
  unfinished: readonly Step[] = [];
  /** Aborts the running turn; `undefined` between turns. */
  running: AbortController | undefined;
  /** Messages of the user that came while the turn ran: the next steps. */
  readonly steered: string[] = [];
  readonly #steeringWaiters = new Set<() => void>();
  /** Failed MCP servers are reported once, in the first turn. */
  surveyed = false;

  constructor(id: string, cwd: string, history: History, servers: readonly McpServer[]) {
    this.id = id;
    this.cwd = cwd;
    this.history = history;
    this.tools = new SessionTools(servers);
  }

  steer(text: string): void {
    this.steered.push(text);
    for (const resolve of this.#steeringWaiters) resolve();
    this.#steeringWaiters.clear();
  }

  /** Resolves at the next message of the user. */
  nextSteered(): Promise<void> {
    return new Promise((resolve) => this.#steeringWaiters.add(resolve));
  }

  cancel(): void {
    this.running?.abort(new Error("the turn was cancelled"));
  }
}
