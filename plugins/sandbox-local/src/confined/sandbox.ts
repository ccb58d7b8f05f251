import type { Duplex } from "node:stream";
import type { SessionFiles } from "@ambit/backend-kit/safe-fs";
import type {
  Command,
  Evidence,
  Exposure,
  FetchHandler,
  LimitHits,
  Process,
  SandboxContents,
} from "@ambit/core/plugin";
import { SessionSandbox } from "../session-sandbox.js";
import { channelUrl, inside } from "./launch/inside.js";
import { type ConfinedSession, openSession, type SessionOptions } from "./session.js";
import { type ConfinedProcess, spawnConfined } from "./spawn.js";

/**
 * Opens a confined sandbox. Its limits are applied; each of its jails is judged before its program's first instruction.
 *
 * @throws SandboxFailed when a limit can't be applied, or with `isTried` when no jail comes up. Nothing of the session
 * remains then.
 */
export async function openConfined(options: SessionOptions): Promise<ConfinedSandbox> {
  const session = await openSession(options);
  try {
    if (options.isTried === true) await tryJail(session);
    return new ConfinedSandbox(session);
  } catch (error) {
    await session.close();
    throw error;
  }
}

async function tryJail(session: ConfinedSession): Promise<void> {
  const nothing = { argv: ["/bin/sh", "-c", ":"], env: {} } as const;
  const trial = await spawnConfined(session, nothing, { rules: false });
  await trial.exit;
}

/** A session in which every process has a separate jail. */
export class ConfinedSandbox extends SessionSandbox {
  readonly confinement = "confined";
  readonly workspace = inside.workspace;
  readonly home = inside.agentHome;
  readonly placeholders: Readonly<Record<string, string>>;
  readonly remains?: string;
  readonly #session: ConfinedSession;
  readonly #jails = new Set<ConfinedProcess>();

  constructor(session: ConfinedSession) {
    super(session.spec.id, filesOf(session));
    this.#session = session;
    if (session.remains !== undefined) this.remains = session.remains;
    this.placeholders = session.credentials?.broker.placeholders ?? {};
  }

  get evidence(): Evidence {
    return { ...this.#session.firstJail, ...this.#session.evidence };
  }

  limitHits(): LimitHits {
    return this.#session.groups?.hits() ?? { processes: 0, memory: 0 };
  }

  /** Folders of the session's cgroups; empty when nothing is limited. */
  get groupPaths(): readonly string[] {
    return this.#session.groups?.paths ?? [];
  }

  /** Its folders on the host, for the probe. */
  get onHost(): { readonly folder: string; readonly workspace: string; readonly home: string } {
    const { path, workspace, home } = this.#session.folder;
    return { folder: path, workspace, home };
  }

  async contents(): Promise<SandboxContents> {
    const files = await this.listFiles();
    return { files, processes: [...this.#jails].reduce((sum, jail) => sum + jail.processes(), 0) };
  }

  protected async start(command: Command): Promise<Process> {
    const started = await spawnConfined(this.#session, command);
    this.#jails.add(started);
    void started.exit.then(() => this.#jails.delete(started));
    return started;
  }

  protected override async exposeInside(handler: FetchHandler): Promise<Exposure> {
    const { channel } = this.#session;
    return channel === undefined ? super.exposeInside(handler) : channel.expose(channelUrl, handler);
  }

  async connect(port: number): Promise<Duplex> {
    const { spec, parts } = this.#session;
    // The agent's jail is the oldest: its servers outlive those of tools.
    const jails = [...this.#jails].flatMap(({ inbound }) => inbound ?? []);
    return parts.enter(spec, jails, port);
  }

  protected closeSession(): Promise<void> {
    return this.#session.close();
  }
}

function filesOf({ folder, user, spec, parts }: ConfinedSession): SessionFiles {
  const home = { guest: inside.agentHome, host: folder.home };
  const workspace = { guest: inside.workspace, host: folder.workspace };
  const mappings = spec.boundary.filesystem.mode === "off" ? [home] : [workspace, home];
  return parts.files(mappings, user);
}
