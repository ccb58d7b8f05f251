import { type AcceptedPlan, callPlugin, pluginReturns, requiredPathsOf, SandboxFailed } from "@ambit/core";
import {
  type Exposure,
  type FetchHandler,
  type Log,
  type ModelRoute,
  type PreparedAgent,
  type PreparedStart,
  type Sandbox,
  type SandboxContents,
  unlessAborted,
} from "@ambit/core/plugin";
import type { CountedDecision } from "../../events/decisions.js";
import { canonicalJson } from "../../json-values.js";
import { OwnedScope } from "../../lifetime/scope.js";
import { ModelRouter, openModelRoute } from "../model-routes.js";
import { Session, sessionFingerprintOf } from "../session.js";

/** The start that a run asks for. */
export interface AskedStart extends Omit<PreparedStart, "model"> {
  readonly plan: AcceptedPlan;
}

export interface MakeOptions {
  /** As its deployer wants it, with nothing of a caller. */
  readonly asked: AskedStart;
  readonly log: Log;
  readonly closeMs: number;
  readonly signal: AbortSignal;
}

/** Milliseconds that a sandbox has to show what is in it. */
const showMs = 5_000;

/** An agent in a sandbox of its own, started before any run asks for it. One run gets both, once. */
export class PooledAgent {
  readonly #session: Session;
  readonly #plan: AcceptedPlan;
  readonly #agent: PreparedAgent;
  readonly #log: Log;
  readonly #way: ReservedExposure | undefined;
  readonly #route: ModelRoute | undefined;
  #hasEnded = false;

  private constructor(
    session: Session,
    plan: AcceptedPlan,
    agent: PreparedAgent,
    model: { readonly way: ReservedExposure | undefined; readonly route: ModelRoute | undefined },
    log: Log,
  ) {
    this.#session = session;
    this.#plan = plan;
    this.#agent = agent;
    this.#log = log;
    this.#way = model.way;
    this.#route = model.route;
    void agent.ended.then(() => {
      this.#hasEnded = true;
    });
  }

  /** Opens the sandbox and starts the agent, or leaves nothing behind. */
  static async make({ asked, log, closeMs, signal }: MakeOptions): Promise<PooledAgent> {
    const { plan, ...start } = asked;
    const session = await Session.open(plan, log, closeMs, signal, { isAhead: true });
    try {
      const { sandbox } = session;
      const { actor: harness } = plan.harness;
      if (sandbox.contents === undefined || harness.prepare === undefined)
        throw new SandboxFailed(
          `Sandbox '${plan.sandbox.actor.name}' doesn't show what is in it, so no agent can be started in it ahead of a run: use local or docker, or remove the agent's prewarm`,
        );
      const way = plan.gateway === undefined ? undefined : await ReservedExposure.on(sandbox);
      const route = way && (await addressOf(plan, way, log, closeMs));
      const agent = await unlessAborted(signal, () =>
        callPlugin(
          harness,
          "prepare",
          pluginReturns.preparedAgent,
          async () =>
            await harness.prepare?.({ ...start, model: route, signal: session.scope.signal, sandbox, log }),
        ),
      );
      return new PooledAgent(session, plan, agent, { way, route }, log);
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Settles when its process has ended. */
  get ended(): Promise<void> {
    return this.#agent.ended;
  }

  get processes(): number {
    return this.#session.processes.count;
  }

  /** Whether no run can have it, since its program was replaced. */
  get isOutdated(): boolean {
    return this.#agent.isOutdated?.() === true;
  }

  /** Whether this actor is part of it. */
  uses(actor: object): boolean {
    const { sandbox, harness, gateway } = this.#plan;
    const parts: readonly (object | undefined)[] = [sandbox.actor, harness.actor, gateway?.probed.actor];
    return parts.includes(actor);
  }

  /** Why such a run can't have it; undefined if it can. Pure. */
  misfit({ plan, ...start }: AskedStart): string | undefined {
    const own = this.#plan;
    if (sessionFingerprintOf(plan) !== sessionFingerprintOf(own))
      return "its sandbox has another boundary, or hides other credentials";
    if (pathsOf(plan) !== pathsOf(own)) return "its program is another one";
    if (routeOf(plan) !== routeOf(own)) return "its model is reached in another way";
    return this.#agent.misfit({ ...start, model: this.#route });
  }

  /**
   * Why no run may have it: what it has done since its start; undefined if it is as it was started.
   *
   * @throws the signal's reason
   */
  async fault(signal: AbortSignal): Promise<string | undefined> {
    const { sandbox } = this.#session;
    const limit = AbortSignal.timeout(showMs);
    try {
      const found = await unlessAborted(
        AbortSignal.any([signal, limit]),
        async () => await sandbox.contents?.(),
      );
      if (found === undefined) return "its sandbox doesn't show what is in it";
      return faultOf(this.#agent, {
        hasEnded: this.#hasEnded,
        hasFailed: this.#session.failure !== undefined,
        decided: this.#session.decidedUnclaimed(),
        askedModel: this.#way?.wasAsked === true,
        found,
        workspace: sandbox.workspace,
      });
    } catch (error) {
      signal.throwIfAborted();
      this.#log.debug({ error }, "a sandbox with an agent that was started ahead can't be looked at");
      return limit.aborted
        ? `its sandbox didn't show what is in it within ${showMs / 1_000} s`
        : "its sandbox couldn't show what is in it";
    }
  }

  /** Gives it to a run. */
  handOver(): Session {
    this.#session.ahead = { agent: this.#agent, way: this.#way?.open };
    return this.#session;
  }

  close(): Promise<void> {
    return this.#session.close();
  }
}

/** The address that the agent gets of the route to its model, which stays closed: it is opened again for the run. */
async function addressOf(
  plan: AcceptedPlan,
  way: ReservedExposure,
  log: Log,
  closeMs: number,
): Promise<ModelRoute | undefined> {
  await using scope = new OwnedScope(log, closeMs);
  return await openModelRoute(plan, log, way.closed, scope, new ModelRouter());
}

function pathsOf(plan: AcceptedPlan): string {
  return canonicalJson([...requiredPathsOf(plan.harness.actor, plan.sandbox.actor)]);
}

/** What the address of a model route depends on. Its endpoint and credentials stay outside. */
function routeOf({ gateway }: AcceptedPlan): string {
  if (gateway === undefined) return "";
  const { protocol, basePath } = gateway.use;
  return canonicalJson({ gateway: gateway.probed.actor.name, protocol, basePath });
}

/** What was observed of an agent between its start and the run that asks for it. */
interface Observed {
  readonly hasEnded: boolean;
  readonly hasFailed: boolean;
  /** Connections that it tried to make. */
  readonly decided: readonly CountedDecision[];
  readonly askedModel: boolean;
  readonly found: SandboxContents;
  readonly workspace: string;
}

/** Why a run may not have the agent; undefined if it is as it was started. Pure. */
function faultOf(agent: Pick<PreparedAgent, "fault">, observed: Observed): string | undefined {
  const { hasEnded, hasFailed, decided, askedModel, found, workspace } = observed;
  if (hasEnded) return "it has ended";
  if (hasFailed) return "its sandbox has failed";
  const [connection] = decided;
  if (connection !== undefined) return `it tried to connect to ${connection.decision.target}`;
  if (askedModel) return "it sent a request to its model";
  const written = found.files.find((path) => path.startsWith(`${workspace}/`));
  if (written !== undefined) return `it wrote ${written} in its workspace`;
  return agent.fault(found);
}

/** The part of a sandbox that a route to the model needs. */
type WayIn = Pick<Sandbox, "expose">;

/**
 * An exposure whose address and token are known before its handler: an agent that is started ahead gets them with its
 * environment. Requests before a run has it are refused.
 */
class ReservedExposure {
  readonly #exposure: Exposure;
  readonly #answer: { handler: FetchHandler };
  readonly #asked: { count: number };

  private constructor(exposure: Exposure, answer: { handler: FetchHandler }, asked: { count: number }) {
    this.#exposure = exposure;
    this.#answer = answer;
    this.#asked = asked;
  }

  static async on(sandbox: WayIn): Promise<ReservedExposure> {
    const asked = { count: 0 };
    const closed = () => {
      asked.count += 1;
      return new Response(null, { status: 503 });
    };
    const answer: { handler: FetchHandler } = { handler: closed };
    const exposure = await sandbox.expose((request) => answer.handler(request));
    return new ReservedExposure(exposure, answer, asked);
  }

  /** Whether something inside sent a request before a run had it. */
  get wasAsked(): boolean {
    return this.#asked.count > 0;
  }

  /** Tells its address, and keeps it closed whatever is exposed. */
  get closed(): WayIn {
    const { url, token } = this.#exposure;
    return { expose: async () => ({ url, token, close: async () => undefined }) };
  }

  /** For the run that gets it: what is exposed has its address. For one handler. */
  get open(): WayIn {
    return {
      expose: async (handler) => {
        this.#answer.handler = handler;
        return this.#exposure;
      },
    };
  }
}
