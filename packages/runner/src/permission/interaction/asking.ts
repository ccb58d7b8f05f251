import { type KeyObject, randomBytes } from "node:crypto";
import { type AgentEvent, projectOf, type RunRequest, type Warning } from "@ambit/core/contract";
import { Answers } from "./answers.js";
import { CallIds } from "./call-ids.js";
import { Interactions } from "./interactions.js";
import type { UsedAnswers } from "./used-answers.js";

/** What all runs of a runner share to ask their users. */
export interface AskingServices {
  /**
   * The key of the ids under which calls are announced that wait for a user. Runners that resume each other's
   * conversations have the same. Asked for when it is first needed.
   */
  readonly interactionKey: () => Promise<KeyObject>;
  readonly usedAnswers: UsedAnswers;
}

/** What one run asks its user with. */
export class Asking {
  /** Names this run in the ids that it issues; the result names it as the session, where the request names none. */
  readonly turn = randomBytes(16).toString("hex");
  readonly interactions: Interactions;
  readonly used: UsedAnswers;
  #answers: Answers | undefined;
  #ids: Promise<CallIds> | undefined;

  constructor(
    readonly request: RunRequest,
    readonly services: AskingServices,
    emit: (event: AgentEvent) => void,
    /** Milliseconds that a call may wait for a live answer. */
    holdMs: number,
  ) {
    this.interactions = new Interactions(emit, holdMs);
    this.used = services.usedAnswers;
  }

  readonly ids = (): Promise<CallIds> => {
    const { sessionId: session } = this.request;
    const conversation = { project: projectOf(this.request), session };
    this.#ids ??= this.services.interactionKey().then((key) => new CallIds(key, conversation, this.turn));
    return this.#ids;
  };

  readonly answers = (): Answers => {
    if (this.#answers === undefined) throw new Error("The run's answers aren't read yet.");
    return this.#answers;
  };

  /** Reads the answers that the request brings. @returns a warning for each that doesn't count. */
  async read(): Promise<readonly Warning[]> {
    const { answers, warnings } = await Answers.of(this.request, this.ids, this.used);
    this.#answers = answers;
    return warnings;
  }
}
