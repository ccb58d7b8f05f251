import type { V1Pod } from "@kubernetes/client-node";
import { z } from "zod";
import { connectTo } from "../api/connect.js";
import { ExecStream } from "../api/exec-stream.js";
import { isGone } from "../api/failure.js";
import { Api } from "../api/requests.js";
import type { KubernetesConfig } from "../config.js";
import { type Pod, podSchema, type Trouble } from "./status.js";

const listMetadata = z
  .object({ resourceVersion: z.string().catch(""), continue: z.string().catch("") })
  .catch({ resourceVersion: "", continue: "" });
const podListSchema = z.object({ metadata: listMetadata, items: z.array(podSchema) });
const eventListSchema = z.object({
  items: z.array(
    z.object({ type: z.string().catch(""), reason: z.string().catch(""), message: z.string().catch("") }),
  ),
});
const anything = z.unknown();
const versionSchema = z.object({ gitVersion: z.string().catch("unknown") });
const maxEvents = "50";
/** What one answer has at most, so that none grows with the namespace. */
const podsPerPage = "250";

/** The requests that this plugin makes, in one namespace. */
export class Cluster {
  readonly api: Api;
  readonly namespace: string;
  readonly starting = new StartingPods();

  constructor(config: KubernetesConfig) {
    this.api = new Api(connectTo(config), config.requestTimeoutMs);
    this.namespace = config.namespace;
  }

  /** The server's address, without credentials. */
  get address(): string {
    return this.api.server.url.host;
  }

  path(kind: string, name?: string, group = "api/v1"): string {
    return [group, "namespaces", this.namespace, kind, ...(name === undefined ? [] : [name])].join("/");
  }

  async version(signal?: AbortSignal): Promise<string> {
    return (await this.api.ask({ path: "version", signal }, versionSchema)).gitVersion;
  }

  /** @returns the pod as the server stored it. */
  async createPod(pod: V1Pod, signal?: AbortSignal): Promise<Pod> {
    return await this.api.ask({ method: "POST", path: this.path("pods"), body: pod, signal }, podSchema);
  }

  /** Undefined if there is none. */
  async pod(name: string, signal?: AbortSignal): Promise<Pod | undefined> {
    try {
      return await this.api.ask({ path: this.path("pods", name), signal }, podSchema);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /**
   * All pods, in pages of one version of the namespace.
   *
   * @throws ApiError also where the server has forgotten that version before the last page
   */
  async *pods(labelSelector: string, signal?: AbortSignal): AsyncGenerator<z.output<typeof podListSchema>> {
    let more = "";
    do {
      const query = { labelSelector, limit: podsPerPage, ...(more === "" ? {} : { continue: more }) };
      const page = await this.api.ask({ path: this.path("pods"), query, signal }, podListSchema);
      yield page;
      more = page.metadata.continue;
    } while (more !== "");
  }

  /** Asks for the end of one pod, unless the name belongs to another one by now. */
  async deletePod(name: string, uid: string, signal?: AbortSignal): Promise<void> {
    const body = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 1, preconditions: { uid } };
    try {
      await this.api.ask({ method: "DELETE", path: this.path("pods", name), body, signal }, anything);
    } catch (error) {
      if (!isGone(error) && !isOther(error)) throw error;
    }
  }

  /** Warnings about one pod, newest last. */
  async warnings(pod: string, signal?: AbortSignal): Promise<readonly { reason: string; message: string }[]> {
    const query = { fieldSelector: `involvedObject.name=${pod},type=Warning`, limit: maxEvents };
    const { items } = await this.api.ask({ path: this.path("events"), query, signal }, eventListSchema);
    return items;
  }

  exec(pod: string, container: string, argv: readonly string[], signal: AbortSignal): Promise<ExecStream> {
    return ExecStream.open(this.api.server, { namespace: this.namespace, pod, container }, argv, signal);
  }
}

/** The name belongs to a pod with another uid. */
const isOther = (error: unknown) => error instanceof Error && "status" in error && error.status === 409;

/** What keeps pods from starting, as far as the cluster has said. */
class StartingPods {
  readonly #troubles = new Map<string, Trouble>();

  /** @param trouble undefined: nothing does, or the pod runs or was given up. */
  note(pod: string, trouble: Trouble | undefined): void {
    if (trouble === undefined) this.#troubles.delete(pod);
    else this.#troubles.set(pod, trouble);
  }

  /** The first of them. */
  get trouble(): Trouble | undefined {
    return this.#troubles.values().next().value;
  }
}
