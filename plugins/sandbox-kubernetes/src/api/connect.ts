import { Agent, type RequestOptions } from "node:https";
import { SandboxFailed } from "@ambit/core/plugin";
import { KubeConfig } from "@kubernetes/client-node";
import type { KubernetesConfig } from "../config.js";

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
