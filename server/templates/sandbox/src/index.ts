import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { probeSandboxes } from "@ambit/attacks/standard-probe";
import { isSeccompArchitecture } from "@ambit/attacks/system-calls";
import {
  allowedNumbers,
  assemble,
  filterStatements,
  seccompRules,
  setIdRules,
} from "@ambit/backend-kit/system-call-filter";
import { bridgeSchema, type DirectPipe, type DirectPlatform, openRemoteSandbox } from "@ambit/bridge";
import {
  type ActorGap,
  definePlugin,
  domains,
  type Finding,
  messageOf,
  type Sandbox,
  type SandboxBackend,
  SandboxFailed,
  type SandboxSpec,
  type Scope,
} from "@ambit/core/plugin";
import { z } from "zod";

export const configSchema = z.strictObject({
  /** The program that makes a sandbox: a path, or a name on the PATH. */
  bubblewrap: z.string().min(1).default("bwrap"),
});
type Config = z.output<typeof configSchema>;

/** What `open` enforces; any restriction of a request requires the last two. Claim no more than the kit proves. */
const claims = ["network.deny", "process.contained", "environment.named-only"] as const;

/** With these the bridge, as root inside, gives each process a user of its own. No process of a run has them. */
const keptCapabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];

/** Inside: the runner's Node.js, and a folder that only the bridge writes to. */
const bridge = bridgeSchema.parse({ node: "/opt/node", folder: "/ambit" });

/** Namespaces of its own, no capability but those, and of the host's files only its programs. */
const isolation = [
  ...["--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
  ...["--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin"],
  ...[
    "--cap-drop",
    "ALL",
    ...[...keptCapabilities, "SETPCAP"].flatMap((name) => ["--cap-add", `CAP_${name}`]),
  ],
  ...["--ro-bind", "/usr", "/usr", "--dir", "/etc", "--dir", "/opt"],
  ...["--ro-bind", process.execPath, bridge.node],
  ...["bin", "sbin", "lib", "lib64"].flatMap((name) => ["--symlink", `usr/${name}`, `/${name}`]),
  ...["/etc/ld.so.cache", "/etc/alternatives"].flatMap((path) => ["--ro-bind-try", path, path]),
  ...["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"],
];

/** In front of the first command: what bubblewrap leaves in the bounding set, no program may get back. */
const bounded = [
  "setpriv",
  "--inh-caps=-all",
  `--bounding-set=-all,${keptCapabilities.map((name) => `+${name.toLowerCase()}`)}`,
];

/** What no namespace closes: vsock, io_uring, … The bridge gives a folder its group, which these rules would refuse. */
const rules = seccompRules.filter((rule) => !setIdRules.includes(rule));

/** One sandbox, with the three functions that the bridge needs. It is one process, and ends with it. */
class Jail implements DirectPlatform {
  /** Options that put what was uploaded in its place. */
  readonly #uploads: string[] = [];
  #end = async () => {};

  constructor(
    readonly bubblewrap: string,
    readonly folder: string,
  ) {}

  /** Called before the pipe is opened. */
  async upload(path: string, content: Uint8Array): Promise<void> {
    const file = join(this.folder, `upload-${this.#uploads.length}`);
    await writeFile(file, content);
    this.#uploads.push("--dir", bridge.folder, "--dir", dirname(path), "--ro-bind", file, path);
  }

  async openDirectPipe(argv: readonly string[]): Promise<DirectPipe> {
    const { arch } = process;
    if (!isSeccompArchitecture(arch))
      throw new SandboxFailed(`There is no filter of system calls for ${arch}`);
    const path = join(this.folder, "filter");
    await writeFile(path, assemble(filterStatements(arch, rules, allowedNumbers(arch))));
    const filter = await open(path);
    try {
      const options = [...isolation, ...this.#uploads, "--seccomp", "3", "--", ...bounded, ...argv];
      // No other variable of the runner's: the first process inside is bubblewrap's own.
      const env = { PATH: process.env.PATH };
      const child = spawn(this.bubblewrap, options, { env, stdio: ["pipe", "pipe", "ignore", filter.fd] });
      const { stdout: output, stdin: input } = child;
      await once(child, "spawn"); // Rejects with the reason where there is no such program.
      if (output === null || input === null) throw new Error("it has no pipes");
      const closed = once(child, "close");
      this.#end = async () => {
        child.kill("SIGKILL"); // The kernel ends everything inside with it.
        await closed;
      };
      return { output, input, close: () => this.#end() };
    } catch (cause) {
      throw new SandboxFailed(`${this.bubblewrap} can't be started: ${messageOf(cause)}`, { cause });
    } finally {
      await filter.close();
    }
  }

  async destroy(): Promise<void> {
    await this.#end();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A sandbox of namespaces, made by bubblewrap as root. */
export class Backend implements SandboxBackend {
  readonly name = "sample";
  readonly site = "sandbox";
  readonly rootfs = "image"; // Programs inside are the sandbox's, and files that the agent needs are copied.
  readonly claims = claims;

  constructor(readonly config: Config) {}

  touches() {
    return domains;
  }

  /** Pure: what can't be enforced of a boundary although it is claimed, each with its fix. Here: nothing. */
  gaps(): ActorGap[] {
    return [];
  }

  /** Tries each claim in sandboxes of this backend, and the same where nothing prevents it. */
  probe(signal: AbortSignal): Promise<readonly Finding[]> {
    const open = (spec: SandboxSpec, scope: Scope) => this.open(spec, scope);
    const fixFor = () => `install bubblewrap (as '${this.config.bubblewrap}'), and start Ambit as root`;
    return probeSandboxes({ claims, open, node: bridge.node, bounding: keptCapabilities, fixFor }, signal);
  }

  /** Applies every requirement or rejects. It never opens something weaker. */
  async open(spec: SandboxSpec, scope: Scope): Promise<Sandbox> {
    const missing = spec.required.filter((capability) => !claims.some((claim) => claim === capability));
    if (missing.length > 0) throw new SandboxFailed(`It doesn't enforce ${missing.join(", ")}`);
    const folder = await mkdtemp(join(tmpdir(), "ambit-sample-"));
    const platform = new Jail(this.config.bubblewrap, folder);
    return openRemoteSandbox(
      { platform, spec, bridge, evidence: {}, ownSystem: false, unprivileged: true },
      scope,
    );
  }
}

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: configSchema,
  register: (registrar, config) => registrar.add("sandbox", new Backend(config)),
});
