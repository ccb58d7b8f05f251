import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { SandboxState } from "@daytona/api-client";
import { ApiError, badRequest, notFound } from "../../http/api-error.js";
import type { ResolvedOptions } from "../../options.js";
import type { Fate } from "../fault-plan.js";
import { allowCreate, allowUpdate, appliedIn } from "../network/network-policy.js";
import { created, type NetworkChange, unlimited, updated } from "../network/network-settings.js";
import type { Secrets } from "../secrets.js";
import type { RunnerClient } from "../toolbox/runner-client.js";
import type { CreateRequest } from "./create-request.js";
import { freeIndex, type Sandbox } from "./sandbox.js";
import { newSnapshotId, type Snapshots, type StoredSnapshot } from "./snapshots.js";

const gibibyte = 1024 ** 3;

/** The organisation's sandboxes and their states. */
export class Sandboxes {
  readonly #sandboxes = new Map<string, Sandbox>();
  /** Pending operations of a sandbox, which run in order. */
  readonly #work = new Map<string, Promise<unknown>>();

  constructor(
    private readonly options: ResolvedOptions,
    private readonly runner: RunnerClient,
    private readonly secrets: Secrets,
    private readonly snapshots: Snapshots,
    private readonly daemonVersionOf: (sandbox: Sandbox) => Promise<string | undefined>,
  ) {}

  all(): Sandbox[] {
    return [...this.#sandboxes.values()];
  }

  get(idOrName: string): Sandbox {
    const sandbox = this.#sandboxes.get(idOrName) ?? this.all().find(({ name }) => name === idOrName);
    if (!sandbox) throw notFound(`Sandbox with ID or name ${idOrName} not found`);
    return sandbox;
  }

  /** Returns it while it is still `creating`; {@link settled} resolves when that is over. */
  create(request: CreateRequest, fate: Fate | undefined): Sandbox {
    const id = randomUUID();
    const name = request.name ?? id;
    const image = this.snapshots.chosenFor(request);
    const network = created(request);
    allowCreate(this.options.organization, network);
    const secrets = new Map(request.secrets.flatMap((entry) => Object.entries(entry)));
    this.secrets.variables(secrets);
    if (this.all().some((other) => other.name === name))
      throw new ApiError(409, `Sandbox with name ${name} already exists`);
    const now = Date.now();
    const sandbox: Sandbox = {
      id,
      name,
      index: freeIndex(this.all()),
      ...image,
      dockerfile: request.buildInfo?.dockerfileContent,
      env: request.env,
      labels: request.labels,
      target: request.target,
      public: request.public,
      network,
      applied: appliedIn(this.options.organization, network),
      secrets,
      state: SandboxState.CREATING,
      errorReason: undefined,
      autoStopInterval: request.autoStopInterval,
      autoDeleteInterval: request.autoDeleteInterval,
      ttlMinutes: this.options.organization.timeToLive ? request.ttlMinutes : 0,
      createdAt: now,
      updatedAt: now,
      lastActivityAt: now,
      stoppedAt: undefined,
      pid: undefined,
      daemonVersion: undefined,
    };
    this.#sandboxes.set(id, sandbox);
    // An error there becomes the sandbox's state.
    void this.#run(sandbox, () => this.#provision(sandbox, fate));
    return sandbox;
  }

  /** Resolves when it leaves `creating` or `starting`, or after `holdMs`. */
  async settled(sandbox: Sandbox): Promise<void> {
    const passing: string[] = [SandboxState.CREATING, SandboxState.STARTING];
    const deadline = performance.now() + this.options.holdMs;
    while (passing.includes(sandbox.state) && this.#sandboxes.has(sandbox.id) && performance.now() < deadline)
      await sleep(5);
  }

  async start(sandbox: Sandbox): Promise<void> {
    if (sandbox.state === SandboxState.STARTED) return;
    if (sandbox.state !== SandboxState.STOPPED) throw badRequest("Sandbox is not in valid state");
    this.#enter(sandbox, SandboxState.STARTING);
    void this.#run(sandbox, () => this.#boot(sandbox));
    await this.settled(sandbox);
  }

  async stop(sandbox: Sandbox): Promise<void> {
    if (sandbox.state === SandboxState.STOPPED) return;
    if (sandbox.state !== SandboxState.STARTED) throw badRequest("Sandbox is not started");
    this.#enter(sandbox, SandboxState.STOPPING);
    await this.#run(sandbox, async () => {
      await this.runner.call({ method: "stop", id: sandbox.id });
      sandbox.pid = undefined;
      sandbox.stoppedAt = Date.now();
      this.#enter(sandbox, SandboxState.STOPPED);
    });
    if (sandbox.autoDeleteInterval === 0) await this.destroy(sandbox);
  }

  /** Refused while its state changes (`apps/api/src/sandbox/services/sandbox.service.ts`). */
  requestDestroy(sandbox: Sandbox): Promise<void> {
    const changing: string[] = [
      SandboxState.CREATING,
      SandboxState.STARTING,
      SandboxState.STOPPING,
      SandboxState.SNAPSHOTTING,
    ];
    const isStuck = Date.now() - sandbox.createdAt > this.options.stuckMs;
    if (changing.includes(sandbox.state) && !isStuck)
      throw new ApiError(409, "Sandbox state change in progress");
    return this.destroy(sandbox);
  }

  async destroy(sandbox: Sandbox): Promise<void> {
    if (!this.#sandboxes.has(sandbox.id)) return;
    this.#enter(sandbox, SandboxState.DESTROYING);
    await this.#run(sandbox, async () => {
      if (!this.#sandboxes.has(sandbox.id)) return;
      await this.runner.call({ method: "destroy", id: sandbox.id }).catch((error) => {
        Object.assign(sandbox, { state: SandboxState.ERROR, errorReason: String(error) });
        throw error;
      });
      this.#enter(sandbox, SandboxState.DESTROYED);
      this.#sandboxes.delete(sandbox.id);
    });
    this.#work.delete(sandbox.id);
  }

  /**
   * Begins to make a snapshot of it, which isn't awaited. A failure isn't reported: the sandbox has its state back, and there
   * is no snapshot (`runV0SnapshotFromSandbox` in `apps/api/src/sandbox/services/sandbox.service.ts`).
   */
  makeSnapshot(sandbox: Sandbox, name: string): void {
    const before = sandbox.state;
    if (before !== SandboxState.STARTED && before !== SandboxState.STOPPED)
      throw badRequest("Sandbox must be in started or stopped state to create a snapshot");
    this.#enter(sandbox, SandboxState.SNAPSHOTTING);
    void this.#run(sandbox, async () => {
      const { snapshots, snapshotMs } = this.options.organization;
      const id = newSnapshotId();
      try {
        await sleep(snapshotMs);
        if (snapshots === "lost") return;
        await this.runner.call({ method: "snapshot", id: sandbox.id, snapshot: id });
        this.snapshots.add(id, name, sandbox);
      } catch {
        await this.runner.call({ method: "forget", snapshot: id });
      } finally {
        if (sandbox.state === SandboxState.SNAPSHOTTING) this.#enter(sandbox, before);
      }
    });
  }

  async deleteSnapshot(snapshot: StoredSnapshot): Promise<void> {
    this.snapshots.delete(snapshot);
    await this.runner.call({ method: "forget", snapshot: snapshot.id });
  }

  /** Kills its processes from outside. */
  async crash(sandbox: Sandbox): Promise<void> {
    await this.#run(sandbox, async () => {
      await this.runner.call({ method: "stop", id: sandbox.id });
      this.#fail(sandbox, "Sandbox container exited unexpectedly");
    });
  }

  /** A container that exits stops its sandbox. */
  ended(id: string): void {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox?.state !== SandboxState.STARTED) return;
    sandbox.pid = undefined;
    sandbox.stoppedAt = Date.now();
    this.#enter(sandbox, SandboxState.STOPPED);
  }

  async changeNetwork(sandbox: Sandbox, change: NetworkChange): Promise<void> {
    allowUpdate(this.options.organization, change);
    const network = updated(sandbox.network, change);
    sandbox.network = network;
    sandbox.applied = appliedIn(this.options.organization, network);
    sandbox.updatedAt = Date.now();
    await this.#applyNetwork(sandbox);
  }

  /** The proxy gets the new set at once; variables change with the next start. */
  async changeSecrets(sandbox: Sandbox, secrets: ReadonlyMap<string, string>): Promise<void> {
    this.secrets.variables(secrets);
    sandbox.secrets = secrets;
    await this.#applyNetwork(sandbox);
  }

  /** Called after a secret's value or hosts changed, or it was deleted. */
  async refreshSecrets(): Promise<void> {
    for (const sandbox of this.all()) if (sandbox.secrets.size > 0) await this.#applyNetwork(sandbox);
  }

  readonly touch = (sandbox: Sandbox) => Object.assign(sandbox, { lastActivityAt: Date.now() });

  async #provision(sandbox: Sandbox, fate: Fate | undefined): Promise<void> {
    const { options } = this;
    const started = performance.now();
    if (fate === "never_starts") return;
    const delay = () => sleep(Math.max(0, options.startDelayMs - (performance.now() - started)));
    if (fate !== undefined) {
      await delay();
      this.#fail(
        sandbox,
        fate === "build_failed" ? "Failed to build the image" : "Failed to start the container",
      );
      if (fate === "build_failed") this.#enter(sandbox, SandboxState.BUILD_FAILED);
      return;
    }
    const { id, index, image, from, env, cpu, memory, disk } = sandbox;
    const spec = {
      id,
      index,
      image,
      ...(from === undefined ? {} : { from }),
      cpu,
      env: { ...env },
      memoryBytes: memory * gibibyte,
      diskBytes: disk * gibibyte,
      sessionGraceMs: options.sessionGraceMs,
      ...(options.daemon === undefined ? {} : { daemon: options.daemon }),
    };
    try {
      await this.runner.call({ method: "create", spec });
    } catch (error) {
      this.#fail(sandbox, String(error));
      return;
    }
    await this.#boot(sandbox, delay);
  }

  async #boot(sandbox: Sandbox, delay = async () => {}): Promise<void> {
    try {
      const { id } = sandbox;
      const { rulesDelayMs } = this.options.organization;
      const network = rulesDelayMs > 0 ? unlimited : sandbox.applied;
      const env = this.secrets.variables(sandbox.secrets);
      const substitutions = this.secrets.substitutions(sandbox.secrets);
      sandbox.pid = await this.runner.call({ method: "start", id, network, substitutions, env });
      sandbox.daemonVersion = await this.daemonVersionOf(sandbox);
      await delay();
      this.touch(sandbox);
      this.#enter(sandbox, SandboxState.STARTED);
      // Nothing awaits it or reports its failure.
      if (rulesDelayMs > 0) void sleep(rulesDelayMs).then(() => this.#applyNetwork(sandbox).catch(() => {}));
    } catch (error) {
      this.#fail(sandbox, error instanceof Error ? error.message : String(error));
    }
  }

  async #applyNetwork(sandbox: Sandbox): Promise<void> {
    if (sandbox.state !== SandboxState.STARTED) return;
    const substitutions = this.secrets.substitutions(sandbox.secrets);
    await this.runner.call({ method: "network", id: sandbox.id, network: sandbox.applied, substitutions });
  }

  #enter(sandbox: Sandbox, state: Sandbox["state"]): void {
    // A delete that came in between takes precedence.
    if (sandbox.state === SandboxState.DESTROYING && state !== SandboxState.DESTROYED) return;
    sandbox.state = state;
    sandbox.updatedAt = Date.now();
  }

  #fail(sandbox: Sandbox, reason: string): void {
    sandbox.pid = undefined;
    sandbox.errorReason = reason;
    this.#enter(sandbox, SandboxState.ERROR);
  }

  #run<Result>(sandbox: Sandbox, work: () => Promise<Result>): Promise<Result> {
    const done = (this.#work.get(sandbox.id) ?? Promise.resolve()).then(work);
    this.#work.set(
      sandbox.id,
      done.catch(() => {}),
    );
    return done;
  }
}
