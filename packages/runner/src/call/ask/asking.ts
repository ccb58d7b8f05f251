import { type KeyObject, randomBytes } from "node:crypto";
import type { AcceptedPlan } from "@ambit/core";
import { projectOf, type RunRequest, type Warning } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../../events/run-events.js";
import { tokens } from "../../tokens.js";
import { Answers } from "./answers.js";
import { CallIds } from "./call-ids.js";
import { Interactions } from "./interactions.js";
import { type UseAnswer, UsedAnswers } from "./used-answers.js";

/** The questions of one run to its user. */
@injectable()
export class Asking {
  /** Names this run in the ids that it issues; the result names it as the session, where the request names none. */
  readonly turn = randomBytes(16).toString("hex");
  readonly interactions: Interactions;
  #answers: Answers | undefined;
  #ids: Promise<CallIds> | undefined;

  constructor(
    @inject(tokens.request) readonly request: RunRequest,
    @inject(tokens.plan) plan: AcceptedPlan,
    @inject(tokens.interactionKey) readonly key: () => Promise<KeyObject>,
    @inject(UsedAnswers) readonly used: UsedAnswers,
    @inject(RunEvents) events: RunEvents,
  ) {
    const waitMs = Math.min(request.interactions?.waitMs ?? 0, plan.harness.actor.maxToolCallMs);
    this.interactions = new Interactions((event) => events.emit(event), waitMs);
  }

  readonly ids = (): Promise<CallIds> => {
    const { sessionId: session } = this.request;
    const conversation = { project: projectOf(this.request), session };
    this.#ids ??= this.key().then((key) => new CallIds(key, conversation, this.turn));
    return this.#ids;
  };

  readonly answers = (): Answers => {
    if (this.#answers === undefined) throw new Error("The run's answers aren't read yet.");
    return this.#answers;
  };

  readonly use: UseAnswer = (id) => this.used.use(projectOf(this.request), id);

  /** Reads the answers that the request brings. @returns a warning for each that doesn't count. */
  async read(): Promise<readonly Warning[]> {
    const { sessionId: session } = this.request;
    const conversation = session === undefined ? undefined : { project: projectOf(this.request), session };
    const given = conversation === undefined ? undefined : await this.used.keeper?.given(conversation);
    const { answers, warnings } = await Answers.of(this.request, this.ids, this.use, given);
    this.#answers = answers;
    return warnings;
  }
}
