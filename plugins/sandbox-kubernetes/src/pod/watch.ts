import { setTimeout as after } from "node:timers/promises";
import { LineSplitter, type Log } from "@ambit/core/plugin";
import { z } from "zod";
import type { Cluster } from "./cluster.js";
import { type Pod, podSchema } from "./status.js";

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
