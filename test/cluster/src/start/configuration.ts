import { fileURLToPath } from "node:url";
import { podRange, serviceRange } from "./addresses.js";

/** Where everything of a cluster is. */
export interface Places {
  /** The unpacked programs. */
  readonly programs: string;
  /** The cluster's own folder. */
  readonly folder: string;
  /** Of its cgroup. */
  readonly name: string;
  /** The node's address. */
  readonly address: string;
}

const ownProgram = (path: string) => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url));

export const pauseImage = "ambit.local/pause:1";
const containerdSocket = (folder: string) => `${folder}/containerd.sock`;

/**
 * Pods have links of their own to the node, not a bridge: the node routes what they send each other too, and so its
 * firewall sees it.
 */
export function podNetwork({ folder }: Places): string {
  const ipam = {
    type: "host-local",
    dataDir: `${folder}/addresses`,
    ranges: [[{ subnet: podRange }]],
    routes: [{ dst: "0.0.0.0/0" }],
  };
  const plugins = [
    { type: "ptp", ipMasq: false, ipam },
    { type: "portmap", capabilities: { portMappings: true } },
  ];
  return JSON.stringify({ cniVersion: "0.4.0", name: "pods", plugins });
}

export function containerd({ programs, folder }: Places): string {
  return `version = 3
root = "${folder}/containerd/root"
state = "/run/ambit-containerd"
[grpc]
  address = "${containerdSocket(folder)}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/containerd/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${pauseImage}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "${folder}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "${programs}/runc"
[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
`;
}

export function kubelet({ folder, name }: Places): string {
  const keys = `${folder}/keys`;
  return JSON.stringify({
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    containerRuntimeEndpoint: `unix://${containerdSocket(folder)}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${name}`,
    failCgroupV1: false,
    failSwapOn: false,
    oomScoreAdj: 0,
    enforceNodeAllocatable: ["pods"],
    podPidsLimit: 512,
    maxPods: 500,
    podLogsDir: "/var/log/pods",
    volumePluginDir: `${folder}/kubelet/volume-plugins`,
    authentication: {
      x509: { clientCAFile: `${keys}/ca.crt` },
      webhook: { enabled: true },
      anonymous: { enabled: false },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: `${keys}/node.crt`,
    tlsPrivateKeyFile: `${keys}/node.key`,
    clusterDomain: "cluster.local",
    resolvConf: `${folder}/resolv.conf`,
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "200Mi",
      "imagefs.available": "200Mi",
      "nodefs.inodesFree": "1%",
    },
    nodeStatusUpdateFrequency: "5s",
    streamingConnectionIdleTimeout: "4h",
    shutdownGracePeriod: "0s",
  });
}

/** The cluster's programs, in the order in which they start. */
export const programNames = [
  "etcd",
  "containerd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "policy-controller",
  "world",
] as const;
export type ProgramName = (typeof programNames)[number];

/** The command line of each program. */
export function commandOf(name: ProgramName, places: Places): readonly string[] {
  const { programs, folder, address } = places;
  const keys = `${folder}/keys`;
  const kubeconfig = (subject: string) => `${folder}/${subject}.conf`;
  const program = `${programs}/${name}`;
  switch (name) {
    case "etcd":
      return [
        ...[program, "--data-dir", `${folder}/etcd`, "--unsafe-no-fsync", "--log-level=error"],
        ...[
          "--listen-client-urls",
          "http://127.0.0.1:2379",
          "--advertise-client-urls",
          "http://127.0.0.1:2379",
        ],
        ...["--listen-peer-urls", "http://127.0.0.1:2380"],
        ...["--initial-advertise-peer-urls", "http://127.0.0.1:2380"],
        ...["--initial-cluster", "default=http://127.0.0.1:2380"],
      ];
    case "containerd":
      return [program, "--config", `${folder}/containerd.toml`, "--log-level", "warn"];
    case "kube-apiserver":
      return [
        ...[program, "--etcd-servers=http://127.0.0.1:2379"],
        ...[`--bind-address=${address}`, "--secure-port=6443", `--advertise-address=${address}`],
        ...["--endpoint-reconciler-type=none", `--client-ca-file=${keys}/ca.crt`],
        ...[`--tls-cert-file=${keys}/apiserver.crt`, `--tls-private-key-file=${keys}/apiserver.key`],
        `--kubelet-client-certificate=${keys}/kubelet-client.crt`,
        `--kubelet-client-key=${keys}/kubelet-client.key`,
        `--kubelet-certificate-authority=${keys}/ca.crt`,
        "--kubelet-preferred-address-types=InternalIP",
        ...["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"],
        "--service-account-issuer=https://kubernetes.default.svc",
        `--service-account-key-file=${keys}/accounts.pub`,
        `--service-account-signing-key-file=${keys}/accounts.key`,
        ...[
          `--service-cluster-ip-range=${serviceRange}`,
          "--allow-privileged=true",
          "--anonymous-auth=false",
        ],
      ];
    case "kube-controller-manager":
      return [
        ...[program, `--kubeconfig=${kubeconfig("controller-manager")}`, "--use-service-account-credentials"],
        ...[`--service-account-private-key-file=${keys}/accounts.key`, `--root-ca-file=${keys}/ca.crt`],
        ...["--leader-elect=false", "--bind-address=127.0.0.1"],
      ];
    case "kube-scheduler":
      return [
        ...[program, `--kubeconfig=${kubeconfig("scheduler")}`],
        ...["--leader-elect=false", "--bind-address=127.0.0.1"],
      ];
    case "kubelet":
      return [
        ...[program, `--config=${folder}/kubelet.json`, `--kubeconfig=${kubeconfig("node")}`],
        ...["--hostname-override=n1", `--node-ip=${address}`, `--root-dir=${folder}/kubelet`],
      ];
    case "policy-controller":
      return [process.execPath, ownProgram("policy/main.js"), `https://${address}:6443`, keys];
    case "world":
      return ["ip", "netns", "exec", "world", process.execPath, ownProgram("world/main.js")];
  }
}
