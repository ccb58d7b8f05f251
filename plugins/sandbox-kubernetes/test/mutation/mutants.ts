import type { Capability } from "@ambit/core/plugin";
import type { V1Container, V1Pod, V1PodSpec } from "@kubernetes/client-node";

/** One mechanism of a pod's specification that is taken out. */
export interface Mutant {
  readonly name: string;
  change(pod: V1Pod): V1Pod;
  /** What the pod then might not enforce. */
  readonly breaks: readonly Capability[];
  /** Why the probe may prove all the same; undefined where it, or the opening, must notice. */
  readonly secondLine?: string;
}

const spec =
  (change: (asked: V1PodSpec) => Partial<V1PodSpec>) =>
  (pod: V1Pod): V1Pod => {
    if (pod.spec === undefined) throw new Error("a pod without a specification");
    return { ...pod, spec: { ...pod.spec, ...change(pod.spec) } };
  };

const main = (change: (asked: V1Container) => Partial<V1Container>) =>
  spec(({ containers }) => ({ containers: containers.map((one) => ({ ...one, ...change(one) })) }));

const security = (change: Partial<NonNullable<V1Container["securityContext"]>>) =>
  main(({ securityContext }) => ({ securityContext: { ...securityContext, ...change } }));

const withoutRights = (...rights: readonly string[]) =>
  main(({ securityContext }) => ({
    securityContext: {
      ...securityContext,
      capabilities: {
        drop: ["ALL"],
        add: (securityContext?.capabilities?.add ?? []).filter((one: string) => !rights.includes(one)),
      },
    },
  }));

const programs = /^[A-Za-z0-9+/=]+ [A-Za-z0-9+/=]+ [A-Za-z0-9+/=]+$/;

/** Changes a text in the program that makes the pod's mounts, to another one of the same length. */
const inMounts = (text: string | RegExp, other: (found: string) => string) =>
  main(({ command = [] }) => ({
    command: command.map((argument: string) => {
      if (!programs.test(argument)) return argument;
      const [entering = "", opening = "", mounting = ""] = argument.split(" ");
      const old = Buffer.from(mounting, "base64").toString("latin1");
      const changed = Buffer.from(old.replace(text, other), "latin1").toString("base64");
      return `${entering} ${opening} ${changed}`;
    }),
  }));

/** The mount is made at another folder of the image, whose name is as long. */
const mountedElsewhere = (path: string, elsewhere: string) =>
  inMounts(new RegExp(`(?<![a-z])${path}\\0`, "g"), () => `${elsewhere}\0`);

const files = ["filesystem.workspace-only", "filesystem.host-hidden"] as const;
const ownFilter = "the entering program gives the capabilities up and loads a filter of its own";

/** Each mechanism of a pod in the shape `user-namespace`. */
export const mutants: readonly Mutant[] = [
  { name: "`hostUsers: false`", change: spec(() => ({ hostUsers: true })), breaks: ["process.contained"] },
  {
    name: "`readOnlyRootFilesystem`",
    change: security({ readOnlyRootFilesystem: false }),
    breaks: files,
    secondLine: "the entering program makes the image read-only",
  },
  {
    name: "`capabilities.drop: ALL`",
    change: main(({ securityContext }) => ({
      securityContext: {
        ...securityContext,
        capabilities: { add: securityContext?.capabilities?.add ?? [] },
      },
    })),
    breaks: ["process.contained"],
  },
  {
    name: "`allowPrivilegeEscalation: false`",
    change: security({ allowPrivilegeEscalation: true }),
    breaks: ["process.contained"],
    secondLine: "the entering program sets no_new_privs",
  },
  {
    name: "the runtime's seccomp profile",
    change: spec(() => ({ securityContext: { seccompProfile: { type: "Unconfined" } } })),
    breaks: ["process.contained", "network.deny"],
    secondLine: ownFilter,
  },
  {
    name: "the runtime's covered paths",
    change: security({ procMount: "Unmasked" }),
    breaks: files,
  },
  ...["SYS_ADMIN", "NET_ADMIN", "SETPCAP"].map((right) => ({
    name: `\`${right}\` of the entering program`,
    change: withoutRights(right),
    breaks: ["network.deny"] as const,
  })),
  {
    name: "the guest daemon's rights over users",
    change: withoutRights("SETUID", "SETGID", "CHOWN"),
    breaks: ["environment.per-tool"],
  },
  {
    name: "root as the guest daemon's user",
    change: security({ runAsUser: 1000, runAsGroup: 1000 }),
    breaks: ["environment.per-tool"],
  },
  {
    name: "the memory's limit",
    change: main(({ resources }) => ({
      resources: { requests: resources?.requests ?? {}, limits: { cpu: resources?.limits?.cpu ?? "1" } },
    })),
    breaks: ["resources.memory"],
  },
  {
    name: "the processors' limit",
    change: main(({ resources }) => ({
      resources: {
        requests: resources?.requests ?? {},
        limits: { memory: resources?.limits?.memory ?? "1Gi" },
      },
    })),
    breaks: ["resources.cpu"],
  },
  {
    name: "the size of a workspace in memory",
    change: inMounts(/size=\d+m/, (size) => size.replaceAll(/\d/g, "0")),
    breaks: ["resources.disk"],
  },
  {
    name: "`automountServiceAccountToken: false`",
    change: spec(() => ({ automountServiceAccountToken: true })),
    breaks: ["secrets.hidden", "filesystem.host-hidden"],
    secondLine: "the account has no right; the read-back names the token's volume",
  },
  { name: "the mount of `/tmp`", change: mountedElsewhere("/tmp", "/mnt"), breaks: files },
  { name: "the mount of `/var/tmp`", change: mountedElsewhere("/var/tmp", "/var/log"), breaks: files },
  { name: "the mount of `/dev/shm`", change: mountedElsewhere("/dev/shm", "/dev/pts"), breaks: files },
  { name: "the mount of the bridge's folder", change: mountedElsewhere("/ambit", "/media"), breaks: files },
  {
    name: "the mount of `/etc/hosts`",
    change: mountedElsewhere("/etc/hosts", "/etc/group"),
    breaks: files,
  },
  {
    name: "the hidden folder of the termination message",
    change: main(() => ({ terminationMessagePath: "/dev/termination-log" })),
    breaks: files,
  },
];
