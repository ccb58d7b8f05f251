import { once } from "node:events";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { Agent, type RequestOptions, request as requestHttps } from "node:https";
import { isLate, signalWithin } from "@ambit/backend-kit";
import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { KubeConfig } from "@kubernetes/client-node";
import { z } from "zod";
import type { KubernetesConfig } from "../config.js";

/** The API server's own words for a refused request. */
export const statusSchema = z.object({
  message: z.string().catch(""),
  reason: z.string().catch(""),
  code: z.int().catch(0),
});

/** The API server refused a request. */
export class ApiError extends Error {
  override readonly name = "ApiError";

  constructor(
    /** HTTP status. */
    readonly status: number,
    /** In one word, such as `NotFound`. */
    readonly reason: string,
    message: string,
  ) {
    super(message.replaceAll(/\s+/g, " ").trim().slice(0, maxWords));
  }
}

const maxWords = 600;

export const isGone = (error: unknown) => error instanceof ApiError && error.status === 404;

interface Explained {
  readonly reason: string;
  readonly fix: string;
}

const unknownFix = "see the API server's log, or name another sandbox";

const byWords: readonly (readonly [words: RegExp, fix: string])[] = [
  [
    /exceeded quota|must specify (limits|requests)/i,
    "raise the namespace's ResourceQuota, or lower sandbox-kubernetes' memoryMb and cpus",
  ],
  [
    /violates PodSecurity/i,
    'label the namespace pod-security.kubernetes.io/enforce=privileged and install deploy/chart, which limits that, or set sandbox-kubernetes\' hostUsers to "off"',
  ],
  [
    /namespaces? ".*" not found/i,
    "install deploy/chart, which creates it, or set sandbox-kubernetes' namespace",
  ],
  [/RuntimeClass .* not found/i, "set sandbox-kubernetes' runtimeClass to one of the cluster's"],
  [
    /cannot (create|delete) resource "networkpolicies"|networkpolicies: .*(create|delete)/,
    'set sandboxes.settings.egress to "gate" in the chart\'s values, whose Role then allows that (networkpolicies: create, delete), or sandbox-kubernetes\' egress to "bridge"',
  ],
  [
    /is forbidden: User|account may not do all/i,
    "bind this user to the Role of deploy/chart (templates/sandboxes/role.yaml)",
  ],
];

const byCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: "start the API server, or set sandbox-kubernetes' kubeconfig to another cluster",
  ENOTFOUND: "correct the server's name in the kubeconfig",
  EHOSTUNREACH: "check the route to the cluster",
  ETIMEDOUT: "check the route to the cluster",
  DEPTH_ZERO_SELF_SIGNED_CERT: "set the cluster's certificate authority in the kubeconfig",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "set the cluster's certificate authority in the kubeconfig",
};

const fixByWords = (message: string) => byWords.find(([words]) => words.test(message))?.[1] ?? unknownFix;

/** The cause of a refused or failed request, and how a deployer fixes it. Pure. */
export function explain(error: unknown): Explained {
  if (isLate(error)) {
    return {
      reason: "the API server didn't answer in time",
      fix: "check the cluster, or raise sandbox-kubernetes' requestTimeoutMs",
    };
  }
  if (error instanceof ApiError) {
    const reason = error.message === "" ? `it answered ${error.status}` : error.message;
    if (error.status === 401) return { reason, fix: "renew the credentials of the kubeconfig" };
    return { reason, fix: fixByWords(reason) };
  }
  const fix = byCode[codeOf(error) ?? ""] ?? fixByWords(messageOf(error));
  return { reason: messageOf(error).slice(0, maxWords), fix };
}

/** @param doing what was asked of the cluster: `create a pod`. */
export function asSandboxFailed(error: unknown, doing: string): SandboxFailed {
  if (error instanceof SandboxFailed) return error;
  const { reason, fix } = explain(error);
  return new SandboxFailed(`The cluster couldn't ${doing}: ${reason}: ${fix}`, { cause: error });
}

/** For a finding of a probe. */
export function fixFor(error: unknown): string {
  const causes = error instanceof SandboxFailed && error.cause !== undefined ? [error.cause, error] : [error];
  return causes.map((cause) => explain(cause).fix).find((fix) => fix !== unknownFix) ?? unknownFix;
}

/** What a request adds to authenticate both ends. */
interface Credentials
  extends Pick<RequestOptions, "auth" | "ca" | "cert" | "key" | "rejectUnauthorized" | "servername"> {
  agent?: Agent;
  headers?: Record<string, string>;
}

/** The API server, and how to authenticate to it. */
export interface ApiServer {
  readonly url: URL;
  /** Fresh for each request: tokens rotate. */
  credentials(): Promise<Credentials>;
  /** Ends unused connections. */
  close(): void;
}

const maxSockets = 64;

/** Reads the kubeconfig. @throws SandboxFailed */
export function connectTo({
  kubeconfig,
  context,
}: Pick<KubernetesConfig, "kubeconfig" | "context">): ApiServer {
  const config = new KubeConfig();
  try {
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
    if (context !== undefined) config.setCurrentContext(context);
  } catch (cause) {
    // Its message may repeat a line of the file, which holds credentials.
    throw new SandboxFailed(`The kubeconfig ${kubeconfig ?? "(KUBECONFIG)"} can't be read: ${configFix}`, {
      cause,
    });
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new SandboxFailed(
      `The kubeconfig has no ${context === undefined ? "current context with a cluster" : `context ${context} with a cluster`}: ${configFix}`,
    );
  }
  // What the library makes of a host without a kubeconfig.
  if (cluster.server.startsWith("http:") && cluster.skipTLSVerify !== true) {
    throw new SandboxFailed(
      `No kubeconfig was found that leads to an API server over TLS, and the runner isn't in a pod: ${configFix}`,
    );
  }
  // The library's own agent keeps no connection.
  const agent = new Agent({ keepAlive: true, maxSockets });
  return {
    url: new URL(cluster.server.endsWith("/") ? cluster.server : `${cluster.server}/`),
    async credentials() {
      const options: Credentials = {};
      await config.applyToHTTPSOptions(options);
      return cluster.proxyUrl === undefined && cluster.server.startsWith("https:")
        ? { ...options, agent }
        : options;
    },
    close: () => agent.destroy(),
  };
}

const configFix = "set sandbox-kubernetes' kubeconfig and context, or KUBECONFIG";

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  /** Below the server's address, such as `api/v1/namespaces/default/pods`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
}

/** A page of pods has a few MiB. */
const maxAnswerBytes = 64 * 1024 * 1024;
const maxStatusBytes = 64 * 1024;

/** Typed requests to the API server, each with a time limit. */
export class Api {
  constructor(
    readonly server: ApiServer,
    readonly requestTimeoutMs: number,
  ) {}

  /** @throws ApiError for a refusal; Error if the server can't be reached; the signal's reason */
  async ask<Answer>(request: ApiRequest, schema: z.ZodType<Answer>): Promise<Answer> {
    const signal = signalWithin(this.requestTimeoutMs, request.signal);
    const response = await this.#send(request, signal);
    return schema.parse(JSON.parse((await bodyOf(response, maxAnswerBytes)).toString("utf8")));
  }

  /** The answer as it arrives, for a watch: no time limit but the signal. */
  async stream(request: ApiRequest & { readonly signal: AbortSignal }): Promise<IncomingMessage> {
    return await this.#send(request, request.signal);
  }

  async #send(
    { method = "GET", path, query = {}, body }: ApiRequest,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { url: server } = this.server;
    const url = new URL(path, server);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const content = body === undefined ? undefined : JSON.stringify(body);
    const credentials = await this.server.credentials();
    signal.throwIfAborted();
    const send = url.protocol === "https:" ? requestHttps : requestHttp;
    const outgoing = send(url, {
      ...credentials,
      method,
      signal,
      headers: {
        ...credentials.headers,
        accept: "application/json",
        ...(content === undefined
          ? {}
          : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
      },
    });
    outgoing.end(content);
    try {
      const [response]: IncomingMessage[] = await once(outgoing, "response");
      if (response === undefined) throw new Error("the API server gave no response");
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      throw apiErrorOf(statusCode, await bodyOf(response, maxStatusBytes));
    } catch (error) {
      outgoing.destroy();
      // An aborted request fails with an error of Node's own.
      signal.throwIfAborted();
      throw error;
    }
  }
}

/** @param body a `Status`, or what a proxy in between says. */
export function apiErrorOf(statusCode: number, body: Buffer): ApiError {
  const text = body.toString("utf8");
  try {
    const { message, reason } = statusSchema.parse(JSON.parse(text));
    return new ApiError(statusCode, reason, message);
  } catch {
    return new ApiError(statusCode, "", `it answered ${statusCode}: ${text.slice(0, 200)}`);
  }
}

/** @throws Error for a longer one */
export async function bodyOf(response: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response) {
    length += part.length;
    if (length > maxBytes) throw new Error(`the API server's answer is longer than ${maxBytes} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}
