import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { runToEnd } from "@ambit/backend-kit";
import { type NetworkRule, parseNetworkRule, type Sandbox } from "@ambit/core/plugin";
import { makeCertificate } from "@ambit/fakes/certificate";
import type { z } from "zod";
import type { PodShape } from "../../src/enter.js";
import { configSchema, KubernetesSandbox } from "../../src/index.js";
import { Cluster } from "../../src/pod/cluster.js";
import { gateContainer } from "../../src/pod/manifest.js";
import { PodMachine } from "../../src/pod/pod-machine.js";
import { TestNamespace } from "./on-cluster.js";

export function ruleOf(text: string): NetworkRule {
  const parsed = parseNetworkRule(text);
  if (!("rule" in parsed)) throw new Error(parsed.problem);
  return parsed.rule;
}

/** Runs a shell's script as a process of the run. */
export async function sh(sandbox: Sandbox, script: string, env: Readonly<Record<string, string>> = {}) {
  const { stdout, stderr, exit } = await runToEnd(sandbox, {
    argv: ["/bin/sh", "-c", script],
    env: { PATH: sandbox.image?.searchPath ?? "", ...env },
    role: "agent",
    signal: AbortSignal.timeout(60_000),
  });
  return { stdout: stdout.trim(), stderr: stderr.trim(), code: exit.code };
}

export const gateOf = ({ evidence }: Sandbox) => String(evidence["kubernetes.gate"]).split("/")[1] ?? "";

async function listen(server: Server, host: string): Promise<number> {
  await once(server.listen(0, host), "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("it doesn't listen");
  return bound.port;
}

/** Servers on this host that open pods reach, and a namespace of the shape where every name leads to them. */
export class Gated {
  /** Authorization headers, as they came. */
  readonly authorizations: (string | undefined)[] = [];
  readonly body = randomBytes(24_000_000);
  readonly certificate = makeCertificate("listed.test");
  readonly #servers: readonly Server[];
  readonly #backends: KubernetesSandbox[] = [];

  private constructor(
    readonly namespace: TestNamespace,
    readonly shape: PodShape,
    readonly host: string,
  ) {
    const answer: RequestListener = (request, response) => {
      this.authorizations.push(request.headers.authorization);
      response.end(request.url === "/body" ? this.body : `it got ${request.headers.authorization}`);
    };
    this.#servers = [createHttpServer(answer), createTlsServer(this.certificate, answer)];
  }
  port = 0;
  tlsPort = 0;

  /** The better shape has to hold without any controller. */
  static async open(shape: PodShape): Promise<Gated> {
    const namespace = await TestNamespace.open({ enforced: shape === "baseline" });
    const gated = new Gated(namespace, shape, namespace.own.place.hostAddress);
    const [http, tls] = gated.#servers;
    if (http === undefined || tls === undefined) throw new Error("there are no servers");
    gated.port = await listen(http, gated.host);
    gated.tlsPort = await listen(tls, gated.host);
    return gated;
  }

  backend(settings: Partial<z.input<typeof configSchema>> = {}): KubernetesSandbox {
    const { namespace, shape, host } = this;
    const hostUsers = shape === "baseline" ? "off" : "require";
    const config = { ...namespace.settings, egress: "gate", hostUsers, ...settings };
    const backend = new KubernetesSandbox(configSchema.parse(config), async () => [host]);
    this.#backends.push(backend);
    return backend;
  }

  get boundary() {
    const rules = [
      ...[this.port, this.tlsPort].map((port) => ruleOf(`listed.test:${port}`)),
      ruleOf(`${this.host}/32:${this.port}`),
      ruleOf(`${this.host}/32:${this.tlsPort}`),
    ];
    return { network: { mode: "allowlist", rules } } as const;
  }

  /** What the API server says of all objects of a kind. */
  async listOf(kind: "pods" | "networkpolicies"): Promise<readonly Record<string, unknown>[]> {
    const group = kind === "pods" ? "api/v1" : "apis/networking.k8s.io/v1";
    const { items } = await this.namespace.request(
      "GET",
      `/${group}/namespaces/${this.namespace.name}/${kind}`,
    );
    return Array.isArray(items) ? items : [];
  }

  /** A pod's address. */
  async addressOf(name: string): Promise<string> {
    for (;;) {
      const { status } = await this.namespace.request("GET", this.pathOf(name));
      const address = Object(status).podIP;
      if (typeof address === "string") return address;
    }
  }

  pathOf = (pod: string) => `/api/v1/namespaces/${this.namespace.name}/pods/${pod}`;

  /** Runs a command in a gate's pod, as a user of the cluster with that right. */
  async inGate(name: string, script: string): Promise<string> {
    const config = configSchema.parse(this.namespace.settings);
    const cluster = new Cluster(config);
    const machine = new PodMachine(cluster, config, name, "", gateContainer);
    const { output } = await machine.run(["/bin/sh", "-c", script], AbortSignal.timeout(30_000));
    cluster.api.server.close();
    return output;
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
    }
    await Promise.all(this.#backends.map((backend) => backend.close()));
    await this.namespace.close();
  }
}
