import { setTimeout as after } from "node:timers/promises";
import { LineSplitter, type Log } from "@ambit/core/plugin";
import type { V1Pod } from "@kubernetes/client-node";
import { z } from "zod";
import { ExecStream } from "../api/exec-stream.js";
import { Api, connectTo, isGone } from "../api/server.js";
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

/** Called with each state of a pod; undefined: it doesn't exist any more. */
type Listener = (pod: Pod | undefined) => void;

interface Watched {
  readonly uid: string;
  readonly listener: Listener;
}

const eventSchema = z.object({ type: z.string(), object: z.unknown() });
/** A pod's object has some KiB. */
const maxLineBytes = 4 * 1024 * 1024;
const maxWaitMs = 5_000;
/** Seconds after which the server ends a watch, so that a connection that is silently dead is noticed. */
const watchSeconds = 240;

/**
 * One watch for all pods of this runner: a list, then changes. When it breaks, pods are listed again, so nothing is
 * missed.
 */
export class PodWatch {
  readonly #cluster: Cluster;
  readonly #selector: string;
  readonly #pods = new Map<string, Watched>();
  #running: AbortController | undefined;

  constructor(cluster: Cluster, selector: string) {
    this.#cluster = cluster;
    this.#selector = selector;
  }

  /** Follows one pod until the returned function is called. It never keeps the process alive. */
  follow(name: string, uid: string, log: Log, listener: Listener): () => void {
    this.#pods.set(name, { uid, listener });
    if (this.#running === undefined) {
      this.#running = new AbortController();
      void this.#run(this.#running.signal, log);
    }
    return () => {
      if (this.#pods.get(name)?.listener !== listener) return;
      this.#pods.delete(name);
      if (this.#pods.size > 0) return;
      this.#running?.abort();
      this.#running = undefined;
    };
  }

  async #run(signal: AbortSignal, log: Log): Promise<void> {
    for (let wait = 100; !signal.aborted; wait = Math.min(wait * 2, maxWaitMs)) {
      try {
        const version = await this.#list(signal);
        await this.#changes(version, signal);
        wait = 100;
      } catch (error) {
        if (signal.aborted) return;
        log.debug({ error }, "the watch of pods ended, and begins again");
      }
      await after(wait, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  async #list(signal: AbortSignal): Promise<string> {
    // One that is created after the list was asked for comes with the changes.
    const missing = new Map([...this.#pods].map(([name, { uid }]) => [name, uid]));
    let version = "";
    for await (const { items, metadata } of this.#cluster.pods(this.#selector, signal)) {
      version = metadata.resourceVersion;
      for (const pod of items) {
        const { name, uid } = pod.metadata;
        if (this.#pods.get(name)?.uid !== uid) continue;
        missing.delete(name);
        this.#tell(name, pod);
      }
    }
    for (const [name, uid] of missing) if (this.#pods.get(name)?.uid === uid) this.#tell(name, undefined);
    return version;
  }

  async #changes(resourceVersion: string, signal: AbortSignal): Promise<void> {
    const response = await this.#cluster.api.stream({
      path: this.#cluster.path("pods"),
      query: {
        watch: "1",
        labelSelector: this.#selector,
        resourceVersion,
        timeoutSeconds: `${watchSeconds}`,
        allowWatchBookmarks: "true",
      },
      signal,
    });
    response.socket.unref();
    const lines = new LineSplitter({
      maxBytes: maxLineBytes,
      tooLong: () => new Error("an event of the API server is too long"),
    });
    for await (const chunk of response) for (const line of lines.push(chunk)) this.#changed(line);
  }

  /** @throws Error where the server wants pods to be listed again */
  #changed(line: string): void {
    const { type, object } = eventSchema.parse(JSON.parse(line));
    if (type === "ERROR") throw new Error("the API server ended the watch");
    if (type === "BOOKMARK") return;
    const pod = podSchema.parse(object);
    const { name, uid } = pod.metadata;
    if (this.#pods.get(name)?.uid === uid) this.#tell(name, type === "DELETED" ? undefined : pod);
  }

  #tell(name: string, pod: Pod | undefined): void {
    this.#pods.get(name)?.listener(pod);
  }
}
