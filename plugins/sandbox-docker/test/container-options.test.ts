import { probeSpec, shapeOf } from "@ambit/backend-kit";
import { describe, expect, it } from "vitest";
import { configSchema } from "../src/index.js";
import { containerOptions } from "../src/open/container-options.js";

const owner = { deployment: "d", replica: "host-key", session: "s", expires: 1 };
const orderWith = (settings: object, spec = probeSpec({})) =>
  containerOptions(shapeOf(spec), owner, configSchema.parse(settings), ["guest"], {
    hiding: "exec",
    imageVolumes: [],
    seccomp: "{}",
    isDocker: true,
    hasAllUsers: true,
  }).HostConfig;

/** Every boundary that changes the options, with and without settings of a configuration. */
const orders = [
  { title: "no network", spec: probeSpec({ network: { mode: "off", rules: [] } }) },
  {
    title: "an allowlist",
    spec: probeSpec({ network: { mode: "allowlist", rules: [] } }),
  },
  { title: "a network", spec: probeSpec({}), network: "bridge" },
  {
    title: "limits",
    spec: probeSpec({ resources: { memoryMb: 64, processes: 32, cpus: 0.5, diskMb: 16 } }),
    network: "bridge",
  },
  {
    title: "credentials",
    spec: probeSpec({}, { secrets: [{ name: "KEY", value: "a value of its own", hosts: ["a.test"] }] }),
    network: "bridge",
  },
];

describe("the options of a container", () => {
  it.each(orders)("include every restriction with $title", ({ spec, network = "none" }) => {
    const order = orderWith({ network: "bridge" }, spec);
    expect(order).toMatchObject({
      NetworkMode: network,
      IpcMode: "private",
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      CapAdd: ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"],
      SecurityOpt: ["no-new-privileges", "seccomp={}"],
      LogConfig: { Type: "none" },
      RestartPolicy: { Name: "no" },
    });
    expect(order?.PidsLimit).toBeGreaterThan(0);
    for (const options of Object.values(order?.Tmpfs ?? {})) {
      expect(options).toMatch(/nosuid,nodev,.*size=\d+m$/);
    }
    // Options that would undo a restriction above.
    for (const key of [
      "Privileged",
      "PidMode",
      "UsernsMode",
      "Binds",
      "Devices",
      "CgroupParent",
      "Sysctls",
    ]) {
      expect(order).not.toHaveProperty(key);
    }
  });

  it("limits memory, swap, processes and processors as the boundary says", () => {
    const resources = { memoryMb: 64, processes: 32, cpus: 0.5, diskMb: 16 };
    expect(orderWith({}, probeSpec({ resources }))).toMatchObject({
      Memory: 64 * 2 ** 20,
      MemorySwap: 64 * 2 ** 20,
      PidsLimit: 32,
      NanoCpus: 5e8,
      Tmpfs: { "/ambit": expect.stringMatching(/size=16m$/) },
    });
  });

  it("mounts every path of the host read-only", () => {
    const spec = {
      ...probeSpec({}),
      requiredPaths: [{ path: "/opt/agent", what: "the agent" }],
    };
    const settings = { agents: "mount", mounts: [{ source: "/srv/data", target: "/data" }] };
    const binds = orderWith(settings, spec)?.Mounts?.filter(({ Type }) => Type === "bind");
    expect(binds).toEqual([
      { Type: "bind", Source: "/opt/agent", Target: "/opt/ambit/opt/agent", ReadOnly: true },
      { Type: "bind", Source: "/srv/data", Target: "/data", ReadOnly: true },
    ]);
    const outside = { ...spec, requiredPaths: [{ path: "/opt/../etc", what: "the agent" }] };
    expect(() => orderWith(settings, outside)).toThrow("the agent can't be mounted from");
  });

  it("name an AppArmor profile only if the configuration does", () => {
    expect(orderWith({})?.SecurityOpt?.join()).not.toContain("apparmor");
    expect(orderWith({ appArmor: "unconfined" })?.SecurityOpt).toContain("apparmor=unconfined");
  });

  it("include a copy of the image's trust store only for a session with credentials", () => {
    const targets = (mounts: readonly { readonly Target: string }[] = []) =>
      mounts.map(({ Target }) => Target);
    const secrets = [{ name: "KEY", value: "a value of its own", hosts: ["a.test"] }];
    expect(targets(orderWith({})?.Mounts)).toEqual(["/ambit"]);
    expect(targets(orderWith({}, probeSpec({}, { secrets }))?.Mounts)).toEqual(["/ambit", "/etc/ssl/certs"]);
  });
});
