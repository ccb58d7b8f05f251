import { probeSpec } from "@ambit/backend-kit";
import { describe, expect, it } from "vitest";
import { differencesOf } from "../../src/pod/pod-machine.js";
import { podOf } from "../support/manifests.js";

const settings = { tolerations: [{ key: "sandboxes", operator: "Exists" as const }] };
const asked = podOf(settings);
/** It has volumes. */
const askedBaseline = podOf(settings, probeSpec({ network: { mode: "off", rules: [] } }), "baseline");

interface Changes {
  spec?: object;
  container?: object;
  security?: object;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/** The pod as a server of version 1.35 stores it. */
function stored(
  { spec = {}, container = {}, security = {}, labels = {}, annotations = {} }: Changes = {},
  of = asked,
) {
  const copy = structuredClone(of);
  const [main] = copy.spec?.containers ?? [];
  return {
    ...copy,
    metadata: {
      ...copy.metadata,
      uid: "u",
      labels: { ...copy.metadata?.labels, ...labels },
      annotations: {
        ...copy.metadata?.annotations,
        "cni.projectcalico.org/podIP": "10.0.0.1",
        "k8s.v1.cni.cncf.io/network-status": "[]",
        ...annotations,
      },
    },
    spec: {
      ...copy.spec,
      nodeName: "n1",
      schedulerName: "default-scheduler",
      serviceAccount: "default",
      priority: 0,
      serviceAccountName: "default",
      preemptionPolicy: "PreemptLowerPriority",
      volumes: copy.spec?.volumes?.map((volume) =>
        volume.downwardAPI === undefined
          ? volume
          : {
              ...volume,
              downwardAPI: {
                defaultMode: 420,
                items: volume.downwardAPI.items?.map((item) => ({
                  ...item,
                  fieldRef: { apiVersion: "v1", ...item.fieldRef },
                })),
              },
            },
      ),
      containers: [
        {
          ...main,
          terminationMessagePolicy: "File",
          // The server leaves out the empty text, and writes quantities in its own way.
          env: [{ name: "LD_PRELOAD" }],
          resources: { limits: { cpu: "1", memory: "2Gi" }, requests: { cpu: "1", memory: "2Gi" } },
          securityContext: { ...main?.securityContext, ...security },
          ...container,
        },
      ],
      ...spec,
    },
  };
}

const main = asked.spec?.containers[0];
const sidecar = { name: "proxy", image: "other:1" };
const containers = stored().spec.containers;

describe("what the server stored", () => {
  it("is the same pod with a server's own defaults", () => {
    expect(differencesOf(asked, stored())).toStrictEqual([]);
  });

  it.each([
    ...[
      "k8s.v1.cni.cncf.io/networks",
      "v1.multus-cni.io/default-network",
      "cdi.k8s.io/gpu",
      "container.apparmor.security.beta.kubernetes.io/sandbox",
      "io.katacontainers.config.hypervisor.kernel",
      "io.kubernetes.cri-o.userns-mode",
    ].map((name) => ({
      title: `the annotation ${name}`,
      change: { annotations: { [name]: "x" } },
      field: `metadata.annotations.${name}`,
    })),
    {
      title: "a sidecar",
      change: { spec: { containers: [...containers, sidecar] } },
      field: "spec.containers[proxy]",
    },
    {
      title: "an init container",
      change: { spec: { initContainers: [sidecar] } },
      field: "spec.initContainers[proxy]",
    },
    {
      title: "an ephemeral container",
      change: { spec: { ephemeralContainers: [sidecar] } },
      field: "spec.ephemeralContainers",
    },
    {
      title: "a volume",
      change: { spec: { volumes: [...(asked.spec?.volumes ?? []), { name: "token", projected: {} }] } },
      field: "spec.volumes[token]",
    },
    {
      title: "a mount",
      change: {
        container: { volumeMounts: [...(main?.volumeMounts ?? []), { name: "x", mountPath: "/x" }] },
      },
      field: "spec.containers[sandbox].volumeMounts[/x]",
    },
    {
      title: "a variable",
      change: { container: { env: [{ name: "LD_PRELOAD" }, { name: "HTTP_PROXY", value: "x" }] } },
      field: "spec.containers[sandbox].env[HTTP_PROXY]",
    },
    {
      title: "another value of a variable",
      change: { container: { env: [{ name: "LD_PRELOAD", value: "/x.so" }] } },
      field: "spec.containers[sandbox].env[LD_PRELOAD].value",
    },
    {
      title: "variables from elsewhere",
      change: { container: { envFrom: [{ secretRef: { name: "s" } }] } },
      field: "spec.containers[sandbox].envFrom",
    },
    {
      title: "another image",
      change: { container: { image: "x" } },
      field: "spec.containers[sandbox].image",
    },
    {
      title: "another command",
      change: { container: { command: ["x"] } },
      field: "spec.containers[sandbox].command",
    },
    { title: "arguments", change: { container: { args: ["x"] } }, field: "spec.containers[sandbox].args" },
    {
      title: "a probe",
      change: { container: { livenessProbe: {} } },
      field: "spec.containers[sandbox].livenessProbe",
    },
    {
      title: "a hook",
      change: { container: { lifecycle: {} } },
      field: "spec.containers[sandbox].lifecycle",
    },
    {
      title: "privileges",
      change: { security: { privileged: true } },
      field: "spec.containers[sandbox].securityContext.privileged",
    },
    {
      title: "a capability",
      change: { security: { capabilities: { drop: ["ALL"], add: ["SYS_PTRACE"] } } },
      field: "spec.containers[sandbox].securityContext.capabilities.add",
    },
    {
      title: "another seccomp profile",
      change: { security: { seccompProfile: { type: "Unconfined" } } },
      field: "spec.containers[sandbox].securityContext.seccompProfile",
    },
    {
      title: "a writable root",
      change: { security: { readOnlyRootFilesystem: false } },
      field: "spec.containers[sandbox].securityContext.readOnlyRootFilesystem",
    },
    { title: "the node's network", change: { spec: { hostNetwork: true } }, field: "spec.hostNetwork" },
    { title: "the node's processes", change: { spec: { hostPID: true } }, field: "spec.hostPID" },
    { title: "the node's users", change: { spec: { hostUsers: true } }, field: "spec.hostUsers" },
    {
      title: "shared processes",
      change: { spec: { shareProcessNamespace: true } },
      field: "spec.shareProcessNamespace",
    },
    {
      title: "another account",
      change: { spec: { serviceAccountName: "x" } },
      field: "spec.serviceAccountName",
    },
    {
      title: "a token",
      change: { spec: { automountServiceAccountToken: true } },
      field: "spec.automountServiceAccountToken",
    },
    {
      title: "names of the cluster",
      change: { spec: { dnsPolicy: "ClusterFirst" } },
      field: "spec.dnsPolicy",
    },
    {
      title: "a toleration",
      change: {
        spec: { tolerations: [...(asked.spec?.tolerations ?? []), { key: "x", operator: "Exists" }] },
      },
      field: "spec.tolerations[x]",
    },
    {
      title: "another deadline",
      change: { spec: { activeDeadlineSeconds: 1 } },
      field: "spec.activeDeadlineSeconds",
    },
    { title: "another runtime", change: { spec: { runtimeClassName: "x" } }, field: "spec.runtimeClassName" },
    {
      title: "a label that a policy goes by",
      change: { labels: { "ambit-network": "open" } },
      field: "metadata.labels.ambit-network",
    },
  ])("differs by $title", ({ change, field }) => {
    expect(differencesOf(asked, stored(change)).map((one) => one.field)).toStrictEqual([field]);
  });

  it("differs by other names in /etc/hosts, or one more mount, where a pod has volumes", () => {
    const fieldsOf = (change: Changes) =>
      differencesOf(askedBaseline, stored(change, askedBaseline)).map(({ field }) => field);
    expect(fieldsOf({})).toStrictEqual([]);
    expect(fieldsOf({ annotations: { "ambit-hosts": "10.0.0.1 localhost" } })).toStrictEqual([
      "metadata.annotations.ambit-hosts",
    ]);
    const [main] = askedBaseline.spec?.containers ?? [];
    const volumeMounts = [...(main?.volumeMounts ?? []), { name: "token", mountPath: "/x" }];
    expect(fieldsOf({ container: { volumeMounts } })).toStrictEqual([
      "spec.containers[sandbox].volumeMounts[/x]",
    ]);
  });

  it.each([asked, askedBaseline])("differs by each field that is missing", (pod) => {
    for (const field of Object.keys(pod.spec ?? {})) {
      const whole = stored({}, pod);
      const rest = Object.fromEntries(Object.entries(whole.spec).filter(([name]) => name !== field));
      const found = differencesOf(pod, { ...whole, spec: rest }).map((one) => one.field);
      expect(found.some((name) => name.startsWith(`spec.${field}`))).toBe(true);
    }
  });
});
