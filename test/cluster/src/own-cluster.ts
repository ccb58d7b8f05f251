import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { ClusterApi } from "./api.js";
import { type ImageSource, imageArchiveOf } from "./image.js";
import type { OwnClusterPlace } from "./interface.js";
import { worldAddress } from "./start/addresses.js";
import { commandOf, type ProgramName } from "./start/configuration.js";
import { inside } from "./start/namespaces.js";
import { endProgram, signalProgram, startProgram } from "./start/processes.js";

const execute = promisify(execFile);

/** How the tests' policy controller treats a namespace. */
export interface PolicyBehaviour {
  /** False: nothing is enforced, as without a controller. Default true. */
  readonly enforced?: boolean;
  /** Milliseconds after the start of a pod, from which its policies are enforced. Default 0: before its first process. */
  readonly delayMs?: number;
  /** Whether its pods reach the node's own ports whatever a policy says, as with most controllers. Default false. */
  readonly nodeIsOpen?: boolean;
  /** Whether only TCP is refused. Default false. */
  readonly onlyTcp?: boolean;
  /** Whether its pods reach each other whatever a policy says. Default false. */
  readonly neighboursAreOpen?: boolean;
}

export function policyLabels({
  enforced = true,
  delayMs = 0,
  nodeIsOpen = false,
  onlyTcp = false,
  neighboursAreOpen = false,
}: PolicyBehaviour) {
  return {
    ...(enforced ? {} : { "tests.ambit/policy": "absent" }),
    ...(delayMs === 0 ? {} : { "tests.ambit/policy-delay-ms": String(delayMs) }),
    ...(nodeIsOpen ? { "tests.ambit/policy-node": "open" } : {}),
    ...(onlyTcp ? { "tests.ambit/policy-protocols": "tcp" } : {}),
    ...(neighboursAreOpen ? { "tests.ambit/policy-neighbours": "open" } : {}),
  };
}

/** The cluster that this test run started. */
export class OwnCluster {
  constructor(readonly place: OwnClusterPlace) {}

  /** With all rights. */
  get kubeconfig(): string {
    return join(this.place.folder, "admin.conf");
  }

  /** An address beyond the cluster, where every port answers. So does each address that is nowhere else, such as 192.0.2.1. */
  get worldAddress(): string {
    return worldAddress;
  }

  /** With all rights, or those of another certificate. The caller closes it. */
  api(subject = "admin"): ClusterApi {
    return new ClusterApi(`https://${this.place.address}:6443`, join(this.place.folder, "keys"), subject);
  }

  /**
   * Creates a namespace, and waits until pods can be created in it.
   * @returns its name, and `remove`, which also ends its pods.
   */
  async createNamespace(
    labels: Readonly<Record<string, string>> = {},
    policy: PolicyBehaviour = {},
  ): Promise<{ readonly name: string; remove(): Promise<void> }> {
    const name = `t-${randomBytes(5).toString("hex")}`;
    const api = this.api();
    try {
      const metadata = { name, labels: { ...labels, ...policyLabels(policy) } };
      await api.request("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata });
      // The controller manager makes it; pods are refused until then.
      while (!(await exists(api, `/api/v1/namespaces/${name}/serviceaccounts/default`))) await sleep(20);
    } finally {
      api.close();
    }
    return { name, remove: () => this.#removeNamespace(name) };
  }

  async #removeNamespace(name: string): Promise<void> {
    const api = this.api();
    try {
      const pods = `/api/v1/namespaces/${name}/pods`;
      await api.request("DELETE", `${pods}?gracePeriodSeconds=1`);
      await api.request("DELETE", `/api/v1/namespaces/${name}`);
      while (await exists(api, `/api/v1/namespaces/${name}`)) await sleep(100);
    } finally {
      api.close();
    }
  }

  /** Pods name it with `imagePullPolicy: Never`: there is no registry. */
  async importImage(source: ImageSource): Promise<void> {
    const child = spawn(...this.#ctr("images", "import", "-"), { stdio: ["pipe", "ignore", "pipe"] });
    const [said, [code]] = await Promise.all([
      text(child.stderr),
      once(child, "close"),
      // Where the program ends early, what it said tells why.
      pipeline(imageArchiveOf(source), child.stdin).catch(() => undefined),
    ]);
    if (code !== 0) throw new Error(`The image ${source.name} can't be imported: ${said.trim()}`);
  }

  async containerImages(): Promise<readonly string[]> {
    const { stdout } = await execute(...this.#ctr("images", "list", "--quiet"));
    return stdout.split("\n").filter((line) => line !== "");
  }

  /** Starts a program that was killed, by its own command line. */
  start(name: ProgramName): void {
    startProgram(this.place, name, commandOf(name, this.place));
  }

  /** Kills a program, and waits for its end. */
  async kill(name: ProgramName): Promise<void> {
    await endProgram(this.place, name);
  }

  /** Stops a program, or lets it continue: meanwhile it is there and answers nothing. */
  async signal(name: ProgramName, signal: "STOP" | "CONT"): Promise<void> {
    await signalProgram(this.place, name, signal);
  }

  /** The command that runs another one on the node. */
  onNode(command: readonly string[]): readonly [string, ...string[]] {
    return ["nsenter", ...inside(this.place.pid), ...command];
  }

  /** The command that runs another one beyond the cluster, where it may listen at any port but 53 and 80. */
  inWorld(command: readonly string[]): readonly [string, ...string[]] {
    return this.onNode(["ip", "netns", "exec", "world", ...command]);
  }

  #ctr(...args: string[]): [string, string[]] {
    const { programs, folder } = this.place;
    const socket = ["--address", join(folder, "containerd.sock"), "--namespace", "k8s.io"];
    return [join(programs, "ctr"), [...socket, ...args]];
  }
}

async function exists(api: ClusterApi, path: string): Promise<boolean> {
  return await api.request("GET", path).then(
    () => true,
    () => false,
  );
}
