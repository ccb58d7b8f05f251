import { NotFound, SnapshotFailed } from "@ambit/core";
import { type ForkReceipt, projectOf } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../events/run-events.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { ArchiveFacts, HideSecrets, SessionState, WorkspaceService } from "../operator.js";
import type { Session } from "../session/session.js";
import { Sessions } from "../session/sessions.js";
import { type PlannedRun, tokens } from "../tokens.js";

/** Lets a new session begin as a copy of another one, where the request asks for it. */
@injectable()
export class Fork {
  #receipt: ForkReceipt | undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.workspaces) private readonly workspaces: WorkspaceService,
    @inject(Sessions) private readonly sessions: Sessions,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.hideSecrets) private readonly hide: HideSecrets,
    @inject(RunEvents) private readonly events: RunEvents,
  ) {}

  /** What the session began as. Undefined where it began empty, or before. */
  get receipt(): ForkReceipt | undefined {
    return this.#receipt;
  }

  /** @throws NotFound, SessionInUse, SnapshotFailed, StoreFailed; the run's reason */
  async into(session: Session): Promise<void> {
    const { fork } = this.run.request;
    if (fork === undefined) return;
    if (!session.isEmpty) {
      const message = "isn't used: the session has begun already, and stays as it is";
      this.events.warn({ path: "fork", message });
      return;
    }
    const { facts, state } = await this.#copied(session, fork);
    if (!session.secrets.mayRemember(state.secrets))
      throw new SnapshotFailed(
        "The session to fork has used more credentials than one session may have. Fork an earlier snapshot.",
      );
    session.conversation = state.conversation;
    session.userMessages = state.userMessages;
    session.wasCutOff = true;
    session.secrets.remember(state.secrets, this.hide);
    this.events.redactor.hide(session.secrets.all);
    const { sha256, bytes, entries } = facts;
    this.#receipt = { ...fork, sha256, bytes, entries };
  }

  async #copied(
    { sandbox }: Session,
    fork: { readonly session?: string | undefined; readonly snapshot?: string | undefined },
  ): Promise<{ readonly facts: ArchiveFacts; readonly state: SessionState }> {
    const { request, plan } = this.run;
    const { signal } = this.scope;
    const { snapshots } = this.workspaces;
    // Refused before: a request without a service isn't admitted.
    if (snapshots === undefined)
      throw new SnapshotFailed("Sessions can't be forked here: this runner has no service for workspaces.");
    const into = { sandbox, backend: plan.sandbox.actor.name };
    const project = projectOf(request);
    if (fork.snapshot !== undefined) return snapshots.restore(fork.snapshot, project, into, signal);
    const id = fork.session ?? "";
    const copied = await this.sessions.using(id, project, async (source) => ({
      facts: await snapshots.copy(source.asSource, into, signal),
      state: source.state,
    }));
    if (copied === undefined)
      throw new NotFound(
        `There is no session ${JSON.stringify(id)} to fork here: it has ended, never began, or is another replica's. A snapshot can be forked on any replica.`,
      );
    return copied;
  }
}
