import { randomUUID } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { probeSpec } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { sandboxImageName } from "@ambit/sandbox-image";
import { configSchema, KubernetesSandbox } from "@ambit/sandbox-kubernetes";
import { OwnCluster, startCluster, whyNotStarted } from "@ambit/test-cluster";
import { CoreV1Api, Exec, KubeConfig } from "@kubernetes/client-node";
import type { Need } from "../../goal.js";
import { temporaryFolder } from "../../machine/temporary-folder.js";
import { type AmbitServer, startAmbit } from "../server/ambit-server.js";
import { type Argv, all, type Streams } from "./streams.js";

/** Milliseconds between two tries of a command in a pod that is just starting, and for the first that works. */
const [retryMs, startMs] = [25, 60_000];
/** A probe opens a dozen pods. */
const probeMs = 300_000;
const containerName = "sandbox";

/** Pods of a real cluster: the backend's, and bare ones over Kubernetes' own client. */
export interface Pods {
  /** @param prewarm maximum number of prepared pods. */
  backend(prewarm: number): Promise<PodBackend>;
  /** A server that opens its sandboxes as pods, once it has probed the cluster. */
  server(prewarm: number): Promise<PodServer>;
  /**
   * A pod of the same image that sleeps, named before it runs.
   * @param hasVolume whether it has an empty folder, as a pod has that writes below a read-only root and makes no mounts itself: the
   * kubelet looks for volumes every 300 ms.
   */
  createBare(hasVolume: boolean): Promise<string>;
  removeBare(name: string): Promise<void>;
  /** A command in a pod. @throws what the API server answers before the container runs. */
  exec(pod: string, argv: Argv): Promise<Streams>;
  /** The command's whole output, tried from the first moment of the pod. */
  execAtOnce(pod: string, argv: Argv): Promise<void>;
}

export interface PodServer extends AsyncDisposable, Pick<AmbitServer, "caller"> {}

export interface PodBackend extends AsyncDisposable {
  open(): Promise<RemoteSandbox>;
}

/** Its evidence has `namespace/name`. */
export const podOf = ({ evidence }: RemoteSandbox) => String(evidence["kubernetes.pod"]).split("/")[1] ?? "";

export const cluster: Need = { missing: async () => whyNotStarted() };

/** Starts a cluster for the bench. */
export async function openPods(): Promise<Pods & AsyncDisposable> {
  const started = await startCluster();
  try {
    await started.ready;
    const own = new OwnCluster(started.place);
    // Its network isn't of interest: pods of the shape with user namespaces have one of their own.
    const { name: namespace } = await own.createNamespace({}, { enforced: false });
    return { ...podsIn(own, namespace), [Symbol.asyncDispose]: () => started.close() };
  } catch (error) {
    await started.close();
    throw error;
  }
}

function podsIn(own: OwnCluster, namespace: string): Pods {
  const access = new KubeConfig();
  access.loadFromFile(own.kubeconfig);
  const api = access.makeApiClient(CoreV1Api);
  const settings = (prewarm: number, dataFolder: string) => ({
    kubeconfig: own.kubeconfig,
    image: sandboxImageName(),
    namespace,
    dataFolder,
    pull: "Never" as const,
    hostUsers: "require" as const,
    cpus: 2,
    reserve: { cpus: 0.01, memoryMb: 32 },
    scratchMb: 64,
    deployment: `bench-${process.pid}-${prewarm}`,
    prewarm,
  });
  const exec = async (pod: string, argv: Argv): Promise<Streams> => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const socket = await new Exec(access).exec(
      namespace,
      pod,
      containerName,
      [...argv],
      output,
      null,
      input,
      false,
      ({ status, message }) => {
        if (status === "Failure") output.destroy(new Error(message));
        else output.end();
      },
    );
    return {
      output: Readable.toWeb(output),
      write: async (bytes) => void input.write(bytes),
      end: async () => socket.close(),
    };
  };
  return {
    exec,
    execAtOnce: async (pod, argv) => {
      for (const end = Date.now() + startMs; ; await pause(retryMs)) {
        try {
          return await all((await exec(pod, argv)).output);
        } catch (error) {
          // Until then, the container may just not run yet.
          if (Date.now() > end) throw error;
        }
      }
    },
    createBare: async (hasVolume) => {
      const name = `bare-${randomUUID()}`;
      await api.createNamespacedPod({
        namespace,
        body: {
          metadata: { name },
          spec: {
            terminationGracePeriodSeconds: 1,
            automountServiceAccountToken: false,
            enableServiceLinks: false,
            hostUsers: false,
            containers: [
              {
                name: containerName,
                image: sandboxImageName(),
                imagePullPolicy: "Never",
                command: ["/bin/sleep", "infinity"],
                ...(hasVolume ? { volumeMounts: [{ name: "work", mountPath: "/work" }] } : {}),
              },
            ],
            ...(hasVolume ? { volumes: [{ name: "work", emptyDir: {} }] } : {}),
          },
        },
      });
      return name;
    },
    removeBare: async (name) => {
      await api.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
    },
    backend: async (prewarm) => {
      const folder = await temporaryFolder();
      const backend = new KubernetesSandbox(configSchema.parse(settings(prewarm, folder.path)));
      const scope = { signal: new AbortController().signal, defer: () => undefined };
      return {
        open: () =>
          backend.open(
            { ...probeSpec({ network: { mode: "off", rules: [] } }), id: `bench-${randomUUID()}` },
            scope,
          ),
        [Symbol.asyncDispose]: async () => {
          await backend.close();
          await folder[Symbol.asyncDispose]();
        },
      };
    },
    server: async (prewarm) => {
      const folder = await temporaryFolder();
      const use = fileURLToPath(import.meta.resolve("@ambit/sandbox-kubernetes"));
      const config = { ...settings(prewarm, folder.path), deployment: `bench-server-${prewarm}` };
      const server = await startAmbit({ plugins: [{ use, config }], probes: { timeoutMs: probeMs } });
      return {
        caller: server.caller,
        [Symbol.asyncDispose]: async () => {
          await server[Symbol.asyncDispose]();
          await folder[Symbol.asyncDispose]();
        },
      };
    },
  };
}
