import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Postgres, startPostgres } from "@ambit/test-postgres";
import { type ApiObject, type OwnCluster, testCluster } from "../../src/index.js";
import { runnerImage } from "./runner-image.js";

const execute = promisify(execFile);
export const chart = fileURLToPath(new URL("../../../../deploy/chart", import.meta.url));

/** Values as the chart takes them. */
export type Values = Readonly<Record<string, unknown>>;

/** What a command said, and its exit code. */
export interface Said {
  readonly code: number;
  readonly text: string;
}

/** Runs a program to its end, whatever its exit code is. */
export async function run(program: string, argv: readonly string[], input = ""): Promise<Said> {
  const running = execute(program, [...argv], { maxBuffer: 2 ** 26 });
  running.child.stdin?.on("error", () => undefined).end(input);
  return await running.then(
    ({ stdout, stderr }) => ({ code: 0, text: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code: typeof code === "number" ? code : 1, text: `${stdout}${stderr}` }),
  );
}

/** Why the chart's tests can't run; undefined where they can. */
export function whyNoHelm(own: OwnCluster): string | undefined {
  return existsSync(join(own.place.programs, "helm")) ? undefined : "AMBIT_CLUSTER has no helm";
}

/** The chart's release in a namespace of its own, with its database. */
export class Release {
  readonly sandboxes = `s-${randomBytes(5).toString("hex")}`;
  readonly token = randomBytes(16).toString("hex");
  #nextPort = 30_000;

  private constructor(
    readonly own: OwnCluster,
    readonly namespace: string,
    readonly postgres: Postgres,
    /** The database's address for pods. */
    readonly postgresUrl: string,
    readonly close: () => Promise<void>,
  ) {}

  static async prepare(): Promise<Release> {
    const { own } = await testCluster();
    if (own === undefined) throw new Error("not the tests' own");
    const [{ name, remove }, postgres] = await Promise.all([
      own.createNamespace({ "pod-security.kubernetes.io/enforce": "restricted" }),
      startPostgres(),
    ]);
    const { listener, port } = await listenFor(postgres, own.place.hostAddress);
    const url = `postgres://ambit@${own.place.hostAddress}:${port}/postgres`;
    const release = new Release(own, name, postgres, url, async () => {
      await remove();
      listener.close();
      await postgres.stop();
    });
    await release.createSecret();
    return release;
  }

  helm(argv: readonly string[], input = ""): Promise<Said> {
    const { programs } = this.own.place;
    const where = ["--kubeconfig", this.own.kubeconfig, "--namespace", this.namespace];
    return run(join(programs, "helm"), [...argv, ...where], input);
  }

  kubectl(argv: readonly string[], input = ""): Promise<Said> {
    return run(
      join(this.own.place.programs, "kubectl"),
      ["--kubeconfig", this.own.kubeconfig, ...argv],
      input,
    );
  }

  /** The values of a release on this cluster, and further ones. */
  values(more: Values = {}): Values {
    const { address, hostAddress } = this.own.place;
    return {
      image: { ...runnerImage, pullPolicy: "Never" },
      service: { type: "NodePort" },
      networkPolicy: { cidrs: [`${hostAddress}/32`] },
      config: { store: { leaseMs: 10_000 } },
      ...more,
      runner: {
        drainSeconds: 60,
        resources: { requests: { cpu: "10m", memory: "64Mi" } },
        // No kube-proxy is here, and so no address of the API server's service.
        env: [
          { name: "KUBERNETES_SERVICE_HOST", value: address },
          { name: "KUBERNETES_SERVICE_PORT", value: "6443" },
        ],
        ...section(more.runner),
      },
      sandboxes: {
        namespace: this.sandboxes,
        pull: "Never",
        hostUsers: "require",
        ...section(more.sandboxes),
        settings: {
          reserve: { cpus: 0.01, memoryMb: 32 },
          scratchMb: 64,
          ...section(section(more.sandboxes).settings),
        },
      },
    };
  }

  /** @throws Error with what Helm said. */
  async install(values: Values): Promise<void> {
    await this.#apply(["upgrade", "--install", "ambit", chart, "--values", "-"], JSON.stringify(values));
  }

  async rollback(): Promise<void> {
    await this.#apply(["rollback", "ambit"]);
  }

  async uninstall(): Promise<void> {
    await this.#apply(["uninstall", "ambit", "--wait", "--timeout", "10m"]);
  }

  /** Waits until the runners of the newest revision are ready, and the others gone. */
  async rolledOut(): Promise<void> {
    const argv = ["rollout", "status", "deployment/ambit", "--namespace", this.namespace, "--timeout", "10m"];
    const { code, text } = await this.kubectl(argv);
    if (code === 0) return;
    const all = ["--namespace", this.namespace];
    const events = await this.kubectl(["get", "events", ...all]);
    const logs = await this.kubectl(["logs", ...all, "--selector", "app.kubernetes.io/name=ambit"]);
    throw new Error([text, events.text, logs.text].join("\n"));
  }

  /** The runners that take runs, by their addresses. */
  async runners(): Promise<readonly { readonly name: string; readonly address: string }[]> {
    const slices = await this.list(`/apis/discovery.k8s.io/v1/namespaces/${this.namespace}/endpointslices`);
    return slices.flatMap(({ endpoints }) =>
      (Array.isArray(endpoints) ? endpoints : [])
        .filter(({ conditions }) => conditions.ready === true)
        .map(({ addresses, targetRef }) => ({ name: targetRef.name, address: addresses[0] })),
    );
  }

  /**
   * In place of kube-proxy: a port of the node leads to these addresses in turn.
   * @returns the URL for this host.
   */
  async reach(addresses: readonly string[]): Promise<string> {
    const port = this.#nextPort;
    this.#nextPort += 1;
    for (const [index, address] of addresses.entries()) {
      const left = addresses.length - index;
      const turn = ["-m", "statistic", "--mode", "nth", "--every", String(left), "--packet", "0"];
      const rule = ["-i", "host0", "-p", "tcp", "--dport", String(port), ...(left > 1 ? turn : [])];
      const argv = ["iptables", "--wait", "-t", "nat", "-A", "PREROUTING", ...rule];
      await execute(
        ...split(this.own.onNode([...argv, "-j", "DNAT", "--to-destination", `${address}:8765`])),
      );
    }
    return `http://${this.own.place.address}:${port}`;
  }

  /** In place of kube-proxy: the API server answers at its service's address. @returns what ends it. */
  async serveApi(): Promise<() => Promise<void>> {
    const { address } = this.own.place;
    const rule = ["PREROUTING", "-d", "10.96.0.1/32", "-p", "tcp", "--dport", "443"];
    const change = async (action: "-A" | "-D") => {
      const argv = ["iptables", "--wait", "-t", "nat", action, ...rule];
      await execute(
        ...split(this.own.onNode([...argv, "-j", "DNAT", "--to-destination", `${address}:6443`])),
      );
    };
    await change("-A");
    return () => change("-D");
  }

  async list(path: string): Promise<readonly ApiObject[]> {
    const api = this.own.api();
    try {
      const { items } = await api.request("GET", path);
      return Array.isArray(items) ? items : [];
    } finally {
      api.close();
    }
  }

  /** Names of the sandboxes that exist. */
  async pods(namespace = this.sandboxes): Promise<readonly string[]> {
    const items = await this.list(`/api/v1/namespaces/${namespace}/pods`);
    return items.map(({ metadata }) => String(section(metadata).name));
  }

  async createSecret(): Promise<void> {
    const api = this.own.api();
    try {
      await api.request("POST", `/api/v1/namespaces/${this.namespace}/secrets`, {
        metadata: { name: "ambit" },
        stringData: {
          token: this.token,
          "postgres-url": this.postgresUrl,
          "interaction-key": randomBytes(32).toString("hex"),
        },
      });
    } finally {
      api.close();
    }
  }

  async #apply(argv: readonly string[], input = ""): Promise<void> {
    const { code, text } = await this.helm(argv, input);
    if (code !== 0) throw new Error(text);
  }
}

export function section(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function split([program, ...argv]: readonly [string, ...string[]]): [string, string[]] {
  return [program, argv];
}

/** The database listens on a unix socket: pods reach it by this host's address. */
async function listenFor({ folder }: Postgres, host: string) {
  const listener = createServer((socket) => {
    const database = connect(join(folder, ".s.PGSQL.5432"));
    pipeline(socket, database, () => undefined);
    pipeline(database, socket, () => undefined);
  }).listen(0, host);
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("it doesn't listen");
  return { listener, port: address.port };
}
