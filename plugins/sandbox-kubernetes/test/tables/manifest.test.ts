import { probeSpec, shapeOf } from "@ambit/backend-kit";
import { describe, expect, it } from "vitest";
import type { PodShape } from "../../src/enter.js";
import { configSchema } from "../../src/index.js";
import { mountsOf } from "../../src/pod/manifest.js";
import { podOf } from "../support/manifests.js";

const daemonRights = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];
const closed = probeSpec({ network: { mode: "off", rules: [] } });

/** Every boundary that changes a pod, in each shape. */
const boundaries = [
  { title: "no network", spec: closed },
  { title: "an allowlist", spec: probeSpec({ network: { mode: "allowlist", rules: [] } }) },
  { title: "a network", spec: probeSpec({}) },
  {
    title: "limits",
    spec: probeSpec({ resources: { memoryMb: 1024, cpus: 0.5, diskMb: 16 } }),
  },
  {
    title: "credentials",
    spec: probeSpec({}, { secrets: [{ name: "KEY", value: "a value of its own", hosts: ["a.test"] }] }),
  },
];
const shapes: readonly PodShape[] = ["user-namespace", "baseline"];
const cases = boundaries.flatMap((boundary) => shapes.map((podShape) => ({ ...boundary, podShape })));

describe("a pod", () => {
  it("waits for its guest daemon as long as its runner waits for the pod", () => {
    const [main] = podOf({ openTimeoutMs: 90_500 }).spec?.containers ?? [];
    expect(main?.command?.[5]).toBe("91");
  });

  it.each(shapes)(
    "has a store of authorities to add to for credentials, and for the deployer's own, in the shape %s",
    (shape) => {
      const config = { trustedAuthorities: ["/etc/company.pem"] };
      const withCredentials = probeSpec(
        {},
        { secrets: [{ name: "KEY", value: "a value", hosts: ["a.test"] }] },
      );
      const storeOf = ({ spec: pod }: ReturnType<typeof podOf>) => ({
        volumes: pod?.volumes?.filter(({ name }) => name === "trust"),
        copied: pod?.initContainers?.map(({ command }) => command),
        mounted: pod?.containers[0]?.volumeMounts?.filter(({ name }) => name === "trust"),
        entered: pod?.containers[0]?.command?.some((word) => word.includes("/etc/ssl/certs")),
      });
      const own = storeOf(podOf(config, closed, shape));
      expect(own).toEqual(storeOf(podOf({}, withCredentials, shape)));
      expect(own).not.toEqual(storeOf(podOf({}, closed, shape)));
    },
  );

  it.each(cases)("has every restriction in the shape $podShape with $title", ({ spec, podShape }) => {
    const { spec: pod } = podOf({}, spec, podShape);
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      restartPolicy: "Never",
      activeDeadlineSeconds: 86_400,
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
    });
    for (const name of ["hostNetwork", "hostPID", "hostIPC", "serviceAccountName", "shareProcessNamespace"])
      expect(pod).not.toHaveProperty(name);
    expect(pod?.hostUsers).toBe(podShape === "user-namespace" ? false : undefined);
    for (const container of [...(pod?.containers ?? []), ...(pod?.initContainers ?? [])]) {
      expect(container.securityContext).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(container.securityContext).not.toHaveProperty("privileged");
      expect(container.terminationMessagePath).toBe("/dev/.ambit/termination-log");
      expect(container.resources?.limits).toMatchObject({
        memory: expect.anything(),
        cpu: expect.anything(),
      });
    }
    const rights = pod?.containers[0]?.securityContext?.capabilities?.add;
    const entering = ["SYS_ADMIN", "NET_ADMIN", "SETPCAP"];
    expect(rights).toStrictEqual([...daemonRights, ...(podShape === "user-namespace" ? entering : [])]);
    for (const volume of pod?.volumes ?? []) expect(volume.emptyDir ?? volume.downwardAPI).toBeDefined();
    // The kubelet would let such a pod wait for them: it makes its mounts itself.
    if (podShape === "user-namespace") {
      expect(pod?.volumes).toBeUndefined();
      expect(pod?.initContainers).toBeUndefined();
    }
  });

  it.each([
    { spec: closed, label: "closed", dnsPolicy: "None" },
    { spec: probeSpec({}), label: "open", dnsPolicy: undefined },
  ])("is $label for policies and names as its boundary is", ({ spec, label, dnsPolicy }) => {
    const pod = podOf({}, spec);
    expect(pod.metadata?.labels).toMatchObject({ ambit: "sandbox", "ambit-network": label });
    expect(pod.spec?.dnsPolicy).toBe(dnsPolicy);
  });

  it("reserves what it may use, unless the deployer says otherwise", () => {
    const limits = { memory: "2048Mi", cpu: "1000m" };
    expect(podOf().spec?.containers[0]?.resources).toStrictEqual({ limits, requests: limits });
    expect(podOf({ reserve: { cpus: 0.1, memoryMb: 4096 } }).spec?.containers[0]?.resources).toStrictEqual({
      limits,
      requests: { memory: "2048Mi", cpu: "100m" },
    });
  });

  it("keeps a workspace with a limit in memory of that size", () => {
    const spec = probeSpec({ resources: { diskMb: 16 } });
    const bridge = (pod: ReturnType<typeof podOf>) =>
      pod.spec?.volumes?.find(({ name }) => name === "bridge");
    expect(bridge(podOf({}, spec, "baseline"))?.emptyDir).toStrictEqual({
      medium: "Memory",
      sizeLimit: "16Mi",
    });
    expect(bridge(podOf({}, closed, "baseline"))?.emptyDir).toStrictEqual({});
    const mounts = (given: typeof spec) => mountsOf(shapeOf(given), configSchema.parse({ image: "image:1" }));
    const scratch = ["/tmp", "/var/tmp", "/dev/shm"].map((path) => ({ path, sizeMb: 256, mode: "1777" }));
    expect(mounts(spec)).toMatchObject({
      onDisk: [],
      inMemory: [{ path: "/ambit", sizeMb: 16, mode: "755" }, ...scratch],
    });
    expect(mounts(closed)).toMatchObject({ onDisk: ["/ambit"], inMemory: scratch });
  });

  it("lets the session's authority be added to the image's, and nothing else of the image be written", () => {
    const spec = boundaries.find(({ title }) => title === "credentials")?.spec ?? closed;
    const { onDisk } = mountsOf(shapeOf(spec), configSchema.parse({ image: "image:1" }));
    expect(onDisk).toEqual(["/ambit", "/etc/ssl/certs"]);
  });

  it("gets a name that fits, whatever its session is called", () => {
    const labels = podOf().metadata?.labels ?? {};
    expect(podOf().metadata?.name).toMatch(/^ambit-[0-9a-f]{20}$/);
    expect(labels["ambit-session"]).toBe("s");
  });

  it("ends with its runner's lease", () => {
    expect(podOf().metadata?.ownerReferences).toMatchObject([{ kind: "Lease", uid: "lease-uid" }]);
  });
});
