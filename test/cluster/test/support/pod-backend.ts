import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { type BinaryPipe, type BinaryPlatform, bridgeSchema, openRemoteSandbox } from "@ambit/bridge";
import { domains, type SandboxBackend, type SandboxSpec, type Scope } from "@ambit/core/plugin";
import type { OwnCluster } from "../../src/index.js";

/** A pod, reached by `kubectl exec`. */
class PodPlatform implements BinaryPlatform {
  readonly #kubectl: readonly [string, ...string[]];
  readonly #name: string;

  constructor(own: OwnCluster, namespace: string, name: string) {
    const program = join(own.place.programs, "kubectl");
    this.#kubectl = [program, "--kubeconfig", own.kubeconfig, "--namespace", namespace];
    this.#name = name;
  }

  #exec(argv: readonly string[]) {
    const [program, ...rest] = this.#kubectl;
    return spawn(program, [...rest, "exec", "-i", this.#name, "--", ...argv], { stdio: "pipe" });
  }

  async openBinaryPipe(argv: readonly [string, ...string[]]): Promise<BinaryPipe> {
    const child = this.#exec(argv);
    child.stdin.on("error", () => undefined);
    await once(child, "spawn");
    return {
      output: Readable.toWeb(child.stdout),
      write: (bytes) =>
        new Promise((resolve, reject) =>
          child.stdin.write(bytes, (error) => (error ? reject(error) : resolve())),
        ),
      close: async () => void child.kill("SIGKILL"),
    };
  }

  async upload(path: string, content: Uint8Array): Promise<void> {
    const script = 'mkdir -p "$3" && head -c "$2" > "$1" && [ "$(wc -c < "$1")" -eq "$2" ]';
    const child = this.#exec(["/bin/sh", "-c", script, "sh", path, String(content.length), dirname(path)]);
    child.stdin.on("error", () => undefined).end(content);
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
    if (code !== 0) throw new Error(`${path} can't be written: ${said}`);
  }

  async destroy(): Promise<void> {
    const [program, ...rest] = this.#kubectl;
    const child = spawn(program, [...rest, "delete", "pod", this.#name, "--grace-period=1", "--wait=false"]);
    await once(child, "close");
  }
}

/**
 * Pods whose network, if it is off, rests on a policy of their namespace alone; its probe only pretends.
 *
 * @param namespaces for pods whose network is off, and for all others.
 */
export function podBackend(
  own: OwnCluster,
  image: string,
  namespaces: { readonly closed: string; readonly open: string },
): SandboxBackend {
  let opened = 0;
  const claims = ["network.deny"] as const;
  return {
    name: "pods",
    site: "sandbox",
    rootfs: "image",
    claims,
    touches: () => domains,
    gaps: () => [],
    probe: async () => claims.map((capability) => ({ capability, proven: true, how: "it says so" })),
    async open(spec: SandboxSpec, scope: Scope) {
      opened += 1;
      const namespace = spec.boundary.network.mode === "off" ? namespaces.closed : namespaces.open;
      const name = `p${opened}`;
      const container = { name: "c", image, imagePullPolicy: "Never", command: ["sleep", "infinity"] };
      const api = own.api();
      const path = `/api/v1/namespaces/${namespace}/pods`;
      await api.request("POST", path, {
        metadata: { name },
        spec: { terminationGracePeriodSeconds: 1, enableServiceLinks: false, containers: [container] },
      });
      while (!JSON.stringify(await api.request("GET", `${path}/${name}`)).includes('"phase":"Running"'))
        await new Promise((resolve) => setTimeout(resolve, 50));
      api.close();
      const platform = new PodPlatform(own, namespace, name);
      return await openRemoteSandbox({ platform, spec, bridge: bridgeSchema.parse({}), evidence: {} }, scope);
    },
  };
}
