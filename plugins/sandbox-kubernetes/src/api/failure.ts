import { isLate } from "@ambit/backend-kit";
import { codeOf, messageOf, SandboxFailed } from "@ambit/core/plugin";
import { z } from "zod";

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
  return causes.map((one) => explain(one).fix).find((fix) => fix !== unknownFix) ?? unknownFix;
}
