import { randomUUID } from "node:crypto";
import {
  type ActorGap,
  type Agent,
  type Boundary,
  type Domain,
  domains,
  type Finding,
  type Harness,
  HarnessFailed,
  type HiddenCredential,
  type ImageRootfs,
  type Installation,
  type Issue,
  type ModelUse,
  type OwnTools,
  type PreparedStart,
  type Prewarm,
  type RequiredPath,
  type Rootfs,
  type RunRequest,
  type Sandbox,
  type StartScope,
} from "@ambit/core/plugin";
import { allowsDestination } from "@ambit/egress";
import { type DriverLimits, defaultDriverLimits, MessageIntake } from "../driver/limits.js";
import type { AgentLaunchPlan, AgentVersions } from "../driver/start-agent.js";
import { Compilation } from "../installation/compile-ahead.js";
import { installationOf } from "../installation/install-agent.js";
import {
  changedAt,
  installationFix,
  type LocatedProgram,
  locateProgram,
  stateOf,
} from "../installation/locate-program.js";
import {
  comesFromRunner,
  isNeededOnRunner,
  namingMissing,
  type PlacedProgram,
  type ProgramChoice,
  place,
  requiredPathsOf,
  rootfsOf,
} from "../installation/place-program.js";
import type { Profile } from "../profiles/profile.js";
import { type LaunchPlanOptions, planLaunch } from "./launch.js";
import { hideableCredentials, modelAccess, modelDestination, modelUse, visibleCredentials } from "./model.js";
import { PreparedAcpAgent } from "./prepared-agent.js";
import { requestIssues } from "./request-issues.js";

export interface AcpHarnessOptions {
  /** Default: {@link defaultDriverLimits}. */
  readonly limits?: Partial<DriverLimits>;
  /** Shared by all agents of the process. Default: one of its own. */
  readonly intake?: MessageIntake;
  /** Where the deployer installs agents. Default: the working directory. */
  readonly folder?: string;
  /** Path of the agent's program, replacing its package. */
  readonly command?: string | undefined;
  /** Path of the Node.js that runs an agent which is a script. Default: the runner's own. */
  readonly node?: string | undefined;
  /** Its program in a sandbox with a separate image: a name on the image's `PATH`, or a path. */
  readonly commandInImage?: string | undefined;
  /** Variables of the deployer for this agent in every run. Default: none. */
  readonly env?: Readonly<Record<string, string>>;
  /** Agents to start before anyone asks for them. Default: none. */
  readonly prewarm?: readonly Prewarm[] | undefined;
}

/** Milliseconds after a change of its packages in which a failed start may be due to an installation that isn't over. */
const settlesMs = 60_000;

/** An agent described by a profile and driven over ACP. It acts only in the sandbox, and so claims nothing. */
export class AcpHarness implements Harness {
  readonly name: string;
  readonly id: string;
  readonly aliases: readonly string[];
  readonly site = "sandbox";
  readonly claims = [];
  readonly supportsPermissionRequests: boolean;
  readonly ownTools: OwnTools;
  readonly skillsFolder?: string;
  readonly installation?: Installation;
  readonly maxToolCallMs: number;
  readonly prewarm: readonly Prewarm[];
  readonly #profile: Profile;
  readonly #limits: DriverLimits;
  readonly #intake: MessageIntake;
  readonly #folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #options: AcpHarnessOptions;
  #located: LocatedProgram | undefined;
  readonly #compilation: Compilation;

  constructor(profile: Profile, options: AcpHarnessOptions = {}) {
    this.#profile = profile;
    this.#options = options;
    this.#compilation = new Compilation(profile, options.node);
    this.#limits = { ...defaultDriverLimits, ...options.limits };
    this.#intake = options.intake ?? new MessageIntake(this.#limits);
    this.#folder = options.folder ?? process.cwd();
    this.#env = options.env ?? {};
    this.name = profile.id;
    this.id = profile.id;
    this.aliases = profile.aliases;
    this.supportsPermissionRequests = profile.supportsPermissionRequests;
    this.ownTools = profile.ownTools;
    if (profile.instructions.skillsFolder !== undefined) {
      this.skillsFolder = profile.instructions.skillsFolder;
    }
    this.maxToolCallMs = profile.maxToolCallMs;
    this.prewarm = options.prewarm ?? [];
    const installation = installationOf(profile, { command: options.command, folder: this.#folder });
    if (installation !== undefined) this.installation = installation;
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(): readonly [] {
    return [];
  }

  model(request: RunRequest): ModelUse | undefined {
    return modelUse(this.#profile, request, this.#env);
  }

  directModelGaps(boundary: Boundary, request: RunRequest): readonly ActorGap[] {
    const { network } = boundary;
    const destination = modelDestination(this.#profile, request, this.#env);
    if (destination === undefined || network.mode === "on") return [];
    if (allowsDestination(network.rules, destination)) return [];
    return [unreachable(destination, boundary, modelAccess(this.#profile, request)?.route !== undefined)];
  }

  /** Claims nothing, and so proves nothing. Looks for the program again, which may have been installed or removed. */
  async probe(): Promise<readonly Finding[]> {
    this.#located = undefined;
    this.#compilation.forget();
    this.#program();
    return [];
  }

  issues(request: RunRequest, rootfs: Rootfs, isRouted: boolean): readonly Issue[] {
    const issues = requestIssues(this.#profile, request, this.#env, isRouted, Date.now());
    return isNeededOnRunner(this.#profile, rootfs) && this.#program() === undefined
      ? [{ path: "harness", message: this.#notInstalled() }, ...issues]
      : issues;
  }

  requiredPaths(rootfs: Rootfs): readonly RequiredPath[] {
    return requiredPathsOf(this.#profile, rootfs, this.#choice());
  }

  visibleCredentials(request: RunRequest): readonly string[] {
    return visibleCredentials(this.#profile, request, this.#env);
  }

  hideableCredentials(request: RunRequest): readonly HiddenCredential[] {
    return hideableCredentials(this.#profile, request, this.#env);
  }

  async start(scope: StartScope): Promise<Agent> {
    const { sandbox } = scope;
    const program = this.#placed(sandbox);
    // The ACP driver is loaded with the first agent, so that a server starts without it.
    const { startAgent } = await import("../driver/start-agent.js");
    const planned = (startId: string = randomUUID()) => {
      const servers = scope.servers.map(({ name, url, headers }) => ({ name, url, headers }));
      return this.#launch({ ...scope, program, startId, servers });
    };
    const isReplaced = this.#watch(sandbox);
    const replaced = `${this.#profile.title} was replaced while it started`;
    const ahead = scope.prepared instanceof PreparedAcpAgent ? scope.prepared : undefined;
    const launch = planned(ahead?.startId);
    const options = {
      profile: this.#profile,
      limits: this.#limits,
      intake: this.#intake,
      launch,
      begun: await ahead?.handOver(launch, scope.log),
      versions: this.#versions(sandbox),
      isOutdated: isReplaced,
    };
    try {
      const agent = await startAgent(options, scope);
      if (isReplaced()) {
        await agent.close();
        throw this.#replaced(replaced);
      }
      // After the first start, which it would slow down.
      void this.#compilation.begin(this.#program(), scope.log);
      return agent;
    } catch (error) {
      const { image } = sandbox;
      if (!scope.signal.aborted && error instanceof HarnessFailed && !error.retryable) {
        if (isReplaced()) throw this.#replaced(replaced, error);
        const failed = error.message.replace(/\.$/, "");
        if (this.#isNew(sandbox))
          throw this.#replaced(
            `${failed}, and its packages were changed less than a minute ago`,
            error.cause,
          );
      }
      if (image === undefined || scope.signal.aborted || this.#isRunners(image)) throw error;
      const expected = { title: this.#profile.title, fix: this.#fixInImage(image) };
      throw await namingMissing(error, sandbox, program, expected);
    }
  }

  async prepare(
    scope: PreparedStart & Pick<StartScope, "signal" | "sandbox" | "log">,
  ): Promise<PreparedAcpAgent> {
    const { sandbox, signal, log } = scope;
    const { ahead } = this.#profile;
    if (ahead === undefined)
      throw new HarnessFailed(`${this.#profile.title} can't be started before its run: remove its prewarm.`);
    const startId = randomUUID();
    const planned = (start: PreparedStart) => {
      const servers = start.serverNames.map((name) => ({ name, url: "", headers: {} }));
      const program = this.#placed(sandbox);
      const launch = this.#launch({ ...start, sandbox, program, startId, servers });
      return { launch, versions: this.#versions(sandbox) };
    };
    const { launch, versions } = planned(scope);
    const { beginAgent } = await import("../driver/start-agent.js");
    const options = { profile: this.#profile, launch, limits: this.#limits, intake: this.#intake };
    const isReplaced = this.#watch(sandbox);
    const begun = await beginAgent(options, { sandbox, signal, log });
    return new PreparedAcpAgent({
      begun,
      isOutdated: isReplaced,
      fixed: { launch, versions },
      fixedFor: planned,
      startId,
      home: sandbox.home,
      facts: ahead,
    });
  }

  #launch({
    deniesTools = false,
    model,
    ...start
  }: Pick<StartScope, "request" | "deniesTools" | "model" | "sandbox"> &
    Pick<LaunchPlanOptions, "program" | "startId" | "servers">): AgentLaunchPlan {
    return planLaunch({ ...start, profile: this.#profile, env: this.#env, deniesTools, route: model });
  }

  /** Undefined for an agent that is part of the plugin, or that no version was tested of. */
  #versions({ image }: Sandbox): AgentVersions | undefined {
    const { package: adapter, companion } = this.#profile.program;
    const isRunners = this.#isRunners(image);
    // An image's own agent reports the version of its adapter.
    const name = isRunners ? (companion?.package ?? adapter) : adapter;
    const tested = this.installation?.packages.find((pinned) => pinned.name === name)?.version;
    if (tested === undefined) return undefined;
    return isRunners ? { tested, installed: this.#program()?.version ?? "unknown" } : { tested };
  }

  #placed({ image }: Sandbox): PlacedProgram {
    const placed = place(this.#profile, image, this.#choice());
    if (placed === undefined) throw new HarnessFailed(this.#notInstalled());
    return placed;
  }

  /** Whether a sandbox's agent is the one that is installed on the runner. */
  #isRunners(image: ImageRootfs | undefined): boolean {
    return comesFromRunner(this.#profile, rootfsOf(image), this.#choice());
  }

  #fixInImage({ mounted }: ImageRootfs): string {
    // An adapter brings its agent along.
    const packages = this.installation?.packages
      .filter(({ name }) => name !== this.#profile.program.adapts)
      .map(({ name, version }) => `${name}@${version}`);
    const inImage =
      packages === undefined
        ? "install it in the image"
        : `install it in the image (npm install --global ${packages.join(" ")})`;
    const onRunner = mounted && this.#options.commandInImage === undefined && packages !== undefined;
    return onRunner
      ? `${installationFix(this.#profile, this.installation)} on this host, or ${inImage}`
      : inImage;
  }

  #choice(): ProgramChoice {
    const { node, commandInImage } = this.#options;
    const located = this.#program();
    return { located, node, commandInImage, compiled: this.#compilation.done(located) };
  }

  /** Whether the program that is installed now was replaced, from its start on. Never for one in an image. */
  #watch({ image }: Sandbox): () => boolean {
    const located = this.#isRunners(image) ? this.#program() : undefined;
    return () => located !== undefined && stateOf(located.watched) !== located.state;
  }

  /** Whether the packages of the runner's program were changed so lately that an installation may not be over. */
  #isNew({ image }: Sandbox): boolean {
    const located = this.#isRunners(image) ? this.#program() : undefined;
    const manifests = located?.watched.filter((file) => file.endsWith(".json")) ?? [];
    return Date.now() - changedAt(manifests) < settlesMs;
  }

  /** @param why the start may succeed later: the beginning of a sentence */
  #replaced(why: string, cause?: unknown): HarnessFailed {
    return new HarnessFailed(`${why}: send the run again when its installation is over.`, {
      retryable: true,
      cause,
    });
  }

  /** Located again once its files were replaced, so that a start has one whole version. */
  #program(): LocatedProgram | undefined {
    if (this.#located !== undefined && stateOf(this.#located.watched) !== this.#located.state) {
      this.#located = undefined;
      this.#compilation.forget();
    }
    this.#located ??= locateProgram(this.#profile, { command: this.#options.command, folder: this.#folder });
    return this.#located;
  }

  #notInstalled(): string {
    const { title } = this.#profile;
    const { command } = this.#options;
    return command === undefined
      ? `${title} isn't installed: ${installationFix(this.#profile, this.installation)}`
      : `${title} isn't at ${command}: correct its path in the configuration of harness-acp`;
  }
}

/** @param canBeRouted whether a model gateway could carry its requests if one were loaded. */
function unreachable(destination: URL, { network }: Boundary, canBeRouted: boolean): ActorGap {
  const port = destination.port || (destination.protocol === "https:" ? "443" : "80");
  const where = `${destination.hostname}:${port}`;
  const gateway = canBeRouted ? "load the plugin @ambit/model-route, or " : "";
  if (network.mode === "off") {
    return {
      capability: "network.deny",
      reason: `its model is at ${where}, and no connection is allowed`,
      fix: `${gateway}allow the model: network.mode "allowlist" with "${where}"`,
    };
  }
  const isAddress = /^[\d.]+$|^\[/.test(destination.hostname);
  return {
    capability: isAddress ? "network.allow-cidr" : "network.allow-host",
    reason: `its model at ${where} isn't on the allowlist`,
    fix: `${gateway}add "${where}" to network.allowlist`,
  };
}
