import { AtCapacity } from "@ambit/core";
import type { OpenedTerminal } from "@ambit/workspace";
import type { TerminalSettings } from "../../configuration/schema.js";
import { HttpRefusal } from "../response/refusal.js";

/** Inputs of one terminal that may wait until it takes them. */
const maxWaitingInputs = 32;

/** A terminal that is open, or is being opened. */
export class TerminalPlace {
  /** Undefined while it is being opened. */
  #terminal: OpenedTerminal | undefined;
  readonly #idle = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #waitingInputs = 0;

  constructor(
    readonly session: string,
    readonly project: string | undefined,
    readonly idleTimeoutMs: number,
  ) {}

  /** Aborts when nothing was typed for so long: a terminal keeps the session's runs waiting. */
  get idle(): AbortSignal {
    return this.#idle.signal;
  }

  get terminal(): OpenedTerminal | undefined {
    return this.#terminal;
  }

  /** From now on it can be typed in. */
  open(terminal: OpenedTerminal): void {
    this.#terminal = terminal;
    const message = `Nothing was typed for ${this.idleTimeoutMs / 1_000} s (server.terminals.idleTimeoutMs).`;
    this.#timer = setTimeout(() => this.#idle.abort(new AtCapacity(message)), this.idleTimeoutMs);
  }

  /** Gives its user's input to the terminal, once that takes it. @throws AtCapacity where too many wait */
  async input(take: () => Promise<void>): Promise<void> {
    if (this.#waitingInputs >= maxWaitingInputs)
      throw new AtCapacity(`${maxWaitingInputs} inputs wait for this terminal: send one after the other.`);
    this.#timer?.refresh();
    this.#waitingInputs += 1;
    try {
      await Promise.race([take(), this.#terminal?.exitCode]);
    } finally {
      this.#waitingInputs -= 1;
    }
  }

  /** Its idle time doesn't count any more. */
  close(): void {
    clearTimeout(this.#timer);
  }
}

/** The terminals of this replica. Each is a shell in the sandbox of a session. */
export class Terminals {
  readonly #places = new Map<string, TerminalPlace>();

  constructor(readonly settings: TerminalSettings) {}

  /** @throws HttpRefusal where the server opens none */
  requireEnabled(): void {
    if (this.settings.enabled) return;
    const message =
      "This server opens no terminals: its operator sets server.terminals.enabled. What is typed in one passes by the permissions of a session's runs, though not by its boundary.";
    throw new HttpRefusal(403, message, "unauthorized");
  }

  get(id: string): TerminalPlace | undefined {
    return this.#places.get(id);
  }

  /** Holds a place until `use` settles. @throws AtCapacity */
  async withPlace<Result>(
    id: string,
    { session, project }: Pick<TerminalPlace, "session" | "project">,
    use: (place: TerminalPlace) => Promise<Result>,
  ): Promise<Result> {
    this.#requireRoom(project);
    const place = new TerminalPlace(session, project, this.settings.idleTimeoutMs);
    this.#places.set(id, place);
    try {
      return await use(place);
    } finally {
      this.#places.delete(id);
      place.close();
    }
  }

  #requireRoom(project: string | undefined): void {
    const { maxTerminals, maxPerProject } = this.settings;
    const places = [...this.#places.values()];
    if (places.length >= maxTerminals)
      throw new AtCapacity(`${maxTerminals} terminals are open already (server.terminals.maxTerminals).`);
    if (places.filter((place) => place.project === project).length >= maxPerProject)
      throw new AtCapacity(
        `The project has ${maxPerProject} open terminals already (server.terminals.maxPerProject): close one.`,
      );
  }
}
