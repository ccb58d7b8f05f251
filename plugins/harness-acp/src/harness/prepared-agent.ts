import { isDeepStrictEqual } from "node:util";
import type { Log, PreparedAgent, PreparedStart, RunRequest, SandboxContents } from "@ambit/core/plugin";
import type { AgentLaunchPlan, AgentVersions, BegunAgent } from "../driver/start-agent.js";
import type { AheadFacts } from "../profiles/profile.js";

/** The part of a start that can't be changed once the agent's process exists. */
export interface FixedStart {
  readonly launch: Pick<AgentLaunchPlan, "argv" | "env" | "files" | "obeyed">;
  readonly versions: AgentVersions | undefined;
}

export interface PreparedAgentOptions {
  readonly begun: BegunAgent;
  /** What it was started with. */
  readonly fixed: FixedStart;
  /** What a new agent would be started with in its place. */
  readonly fixedFor: (start: PreparedStart) => FixedStart;
  /** Its part in the names of its files. */
  readonly startId: string;
  readonly home: string;
  readonly facts: AheadFacts;
  /** Whether its program was replaced since it started. */
  isOutdated(): boolean;
}

/** An agent that has answered `initialize`, and knows nothing of a run. */
export class PreparedAcpAgent implements PreparedAgent {
  readonly startId: string;
  readonly ended: Promise<void>;
  readonly #options: PreparedAgentOptions;

  constructor(options: PreparedAgentOptions) {
    this.#options = options;
    this.startId = options.startId;
    this.ended = options.begun.process.exit.then(() => undefined);
  }

  isOutdated(): boolean {
    return this.#options.isOutdated();
  }

  misfit(start: PreparedStart): string | undefined {
    const { fixed, fixedFor } = this.#options;
    if (this.isOutdated()) return "its program was replaced";
    const wanted = fixedFor(start);
    if (wanted.launch.obeyed.length > 0 && fillsWorkspace(start.request))
      return "its workspace has to be looked at before it starts, and the request fills that";
    return difference(fixed, wanted);
  }

  fault({ files, processes }: SandboxContents): string | undefined {
    const { begun, facts, home, fixed } = this.#options;
    const expectedPaths = [
      ...facts.home.map((name) => `${home}/${name}`),
      ...fixed.launch.files.map(({ path }) => path),
    ];
    const foreign = files.find(
      (path) => !expectedPaths.some((expected) => isWithin(path, expected) || isWithin(expected, path)),
    );
    if (foreign !== undefined) return `it wrote ${foreign}`;
    if (processes > facts.processes) return `it has ${processes} processes instead of ${facts.processes}`;
    const said = begun.connection.unasked.find((method) => !facts.notifications.includes(method));
    return said === undefined ? undefined : `it sent an ACP message that nothing had asked for (${said})`;
  }

  /** Its process, for the run whose log this is. Undefined if that run has to start a new one after all. */
  async handOver(launch: AgentLaunchPlan, log: Log): Promise<BegunAgent | undefined> {
    const { begun, fixed } = this.#options;
    if (difference(fixed, { ...fixed, launch }) === undefined) {
      begun.connection.logTo(log);
      return begun;
    }
    await begun.process.kill();
    return undefined;
  }
}

/** Names what differs, without a value. Pure. */
function difference(fixed: FixedStart, wanted: FixedStart): string | undefined {
  const [current, other] = [fixed.launch, wanted.launch];
  if (!isDeepStrictEqual(fixed.versions, wanted.versions)) return "its version is another one";
  if (!isDeepStrictEqual(current.argv, other.argv)) return "its arguments are other ones";
  const names = [...new Set([...Object.keys(current.env), ...Object.keys(other.env)])];
  const variables = names.filter((name) => current.env[name] !== other.env[name]);
  if (variables.length > 0) return `its environment differs in ${variables.join(", ")}`;
  const paths = [...current.files, ...other.files].map(({ path }) => path);
  const at = (files: AgentLaunchPlan["files"], path: string) => files.find((file) => file.path === path);
  const changed = paths.find((path) => !isDeepStrictEqual(at(current.files, path), at(other.files, path)));
  return changed === undefined ? undefined : `its file ${changed} has another content`;
}

/** Whether the run puts files of its own into the workspace. */
function fillsWorkspace({ harnessFiles, skills, workspace }: RunRequest): boolean {
  return harnessFiles.length > 0 || skills.length > 0 || workspace !== undefined;
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}
