import { readFile } from "node:fs/promises";
import type { Boundary } from "@ambit/core/plugin";
import { describe, expect, test } from "vitest";
import { limitsOf } from "../../src/claims.js";
import { configSchema } from "../../src/config.js";
import { pathRules } from "../../src/confined/files/workspace-rules.js";
import { gateScript, jailEnvironment, launchOf } from "../../src/confined/jail.js";
import { checkHost } from "../../src/confined/jail-setup.ts";
import { descriptorTable } from "../../src/process/host-processes.js";
import { everythingOn } from "../support/specs.js";

const off = { mode: "off", rules: [] } as const;

describe("the environment of a jail's program", () => {
  test("consists of what the command names, a home and a scratch folder", () => {
    expect(jailEnvironment({ env: { A: "1" } }, "shared", everythingOn.network, undefined)).toEqual({
      A: "1",
      HOME: "/home/tool",
      TMPDIR: "/tmp",
      USER: "agent",
      LOGNAME: "agent",
      ASAN_OPTIONS: "detect_leaks=0",
      LSAN_OPTIONS: "detect_leaks=0",
    });
    expect(jailEnvironment({ env: {}, role: "agent" }, "shared", everythingOn.network, undefined).HOME).toBe(
      "/home/agent",
    );
    expect(
      jailEnvironment({ env: { HOME: "/workspace" } }, "shared", everythingOn.network, undefined).HOME,
    ).toBe("/workspace");
  });

  test("names Ambit's proxy, whatever the command names, if the network is separate", () => {
    const { HTTP_PROXY, https_proxy, NO_PROXY, NODE_USE_ENV_PROXY, NODE_OPTIONS } = jailEnvironment(
      { env: { HTTP_PROXY: "http://elsewhere", NODE_OPTIONS: "--no-warnings" } },
      "own",
      off,
      undefined,
    );
    expect({ HTTP_PROXY, https_proxy, NO_PROXY, NODE_USE_ENV_PROXY, NODE_OPTIONS }).toEqual({
      HTTP_PROXY: "http://127.0.0.1:3128",
      https_proxy: "http://127.0.0.1:3128",
      NO_PROXY: "localhost,sandbox,127.0.0.1,127.0.1.1,127.0.0.0/8,::1",
      NODE_USE_ENV_PROXY: "1",
      NODE_OPTIONS: "--no-warnings --require=/run/ambit/node-proxy.cjs",
    });
  });

  test("adds Java's settings of the proxy to the options of its tools, and sets none without a proxy", () => {
    const proxy = ["http", "https"]
      .map((scheme) => `-D${scheme}.proxyHost=127.0.0.1 -D${scheme}.proxyPort=3128`)
      .join(" ");
    const command = { env: { MAVEN_OPTS: "-Xmx1g" } };
    expect(jailEnvironment(command, "own", off, undefined)).toMatchObject({
      MAVEN_OPTS: `${proxy} -Xmx1g`,
      GRADLE_OPTS: proxy,
      SBT_OPTS: proxy,
    });
    expect(jailEnvironment(command, "shared", off, undefined)).toMatchObject({ MAVEN_OPTS: "-Xmx1g" });
  });

  test("makes programs trust the host's authorities, unless the command names others", () => {
    const trust = { authority: "/etc/ssl/certs/all.crt", bundle: "/etc/ssl/certs/all.crt" };
    const variables = jailEnvironment({ env: { PIP_CERT: "/own.pem" } }, "own", off, trust);
    expect(variables).toMatchObject({
      NODE_EXTRA_CA_CERTS: trust.authority,
      npm_config_cafile: trust.bundle,
      REQUESTS_CA_BUNDLE: trust.bundle,
      SSL_CERT_FILE: trust.bundle,
      PIP_CERT: "/own.pem",
    });
  });

  test.each(["", "A B", "A=B", "A\0", "BASH_FUNC_x%%", "1A"])("can't have a variable named %j", (name) => {
    expect(() => jailEnvironment({ env: { [name]: "x" } }, "own", off, undefined)).toThrow(
      /can't be a variable's name/,
    );
  });

  test("can't have NUL in a value", () => {
    expect(() => jailEnvironment({ env: { A: "x\0--bind\0/\0/" } }, "own", off, undefined)).toThrow(/NUL/);
  });
});

describe("the command that starts bubblewrap", () => {
  const jail = ["/usr/bin/bwrap", "--args", "5"];
  const user = { uid: 64_001, gid: 64_001 };
  const relocatedMounts = [{ source: "/closed/node", place: "/data/relocated/0" }];

  test("is direct, as the session's user, if no other step is needed", () => {
    expect(launchOf({ jail, groups: [], relocatedMounts: [], user })).toEqual({
      argv: jail,
      user,
    });
  });

  test("adds itself to its groups as the session's user, and keeps none of their descriptors", () => {
    const { argv, user: as } = launchOf({ jail, groups: [4, 5], relocatedMounts: [], user });
    const script = 'echo 0 >&4 || exit 125\necho 0 >&5 || exit 125\nexec 4>&- 5>&-\nexec "$@"';
    expect(argv.slice(0, 3)).toEqual(["/bin/sh", "-c", script]);
    expect(argv.slice(-3)).toEqual(jail);
    expect(as).toEqual(user);
  });

  test("mounts as root, in a separate mount namespace, and drops root before bubblewrap", () => {
    const { argv, user: as } = launchOf({ jail, groups: [], relocatedMounts, user });
    expect(argv.slice(0, 5)).toEqual(["unshare", "--mount", "--propagation", "private", "--"]);
    const drop = [
      "setpriv",
      "--reuid",
      "64001",
      "--regid",
      "64001",
      "--clear-groups",
      "--no-new-privs",
      "--",
    ];
    expect(argv.slice(-drop.length - jail.length)).toEqual([...drop, ...jail]);
    expect(as).toBeUndefined();
  });
});

test("a child gets the planned descriptors, and /dev/null over others that it would inherit", () => {
  expect(descriptorTable(["a", "b"], [], 9)).toEqual(["a", "b"]);
  expect(descriptorTable(["a", "b"], [1, 3, 5], 9)).toEqual(["a", "b", "ignore", 9, "ignore", 9]);
  expect(descriptorTable(["a", "ignore", "ignore", "b"], [2, 3], 9)).toEqual(["a", "ignore", 9, "b"]);
});

describe("the rules of a workspace", () => {
  const filesystem = { ...everythingOn.filesystem, mode: "workspace" as const };

  test("go from broad to narrow, and nothing lies below a denied path", () => {
    const rules = pathRules(
      { ...filesystem, writable: ["a/b/", "c", "c/d"], readable: ["./a"], denied: ["c"] },
      [".git/config"],
    );
    expect(rules).toEqual([
      { path: "a", access: "read", make: false },
      { path: "c", access: "none", make: true },
      { path: "a/b", access: "write", make: true },
      { path: ".git/config", access: "read", make: false, kept: true },
    ]);
  });

  test("don't apply to the workspace itself", () => {
    expect(pathRules({ ...filesystem, writable: ["."], denied: ["./"] }, [])).toEqual([]);
  });
});

describe("parts of a boundary that no host can enforce", () => {
  const range = { kind: "range", cidr: "192.0.2.0/24", family: 4 } as const;
  const filesystem = everythingOn.filesystem;
  test.each<[string, Partial<Boundary>, string[]]>([
    ["nothing asked", {}, []],
    ["a range", { network: { mode: "allowlist", rules: [range] } }, []],
    ["a range and a port", { network: { mode: "allowlist", rules: [{ ...range, port: 443 }] } }, []],
    ["limits", { resources: { memoryMb: 10, processes: 10, cpus: 1, diskMb: 10 } }, []],
    [
      "read-only, but",
      { filesystem: { ...filesystem, mode: "readonly", writable: ["out"] } },
      ["filesystem.read-only"],
    ],
    [
      "nothing there, but",
      { filesystem: { ...filesystem, mode: "off", readable: ["in"] } },
      ["filesystem.none"],
    ],
    ["a workspace with lists", { filesystem: { ...filesystem, mode: "workspace", writable: ["out"] } }, []],
  ])("%s", (_name, boundary, gaps) => {
    expect(limitsOf({ ...everythingOn, ...boundary }).map(({ capability }) => capability)).toEqual(gaps);
  });
});

test("the gate never starts a payload before the runner allows it", () => {
  for (const wayOut of [undefined, { forwards: [], isInbound: true }]) {
    const lines = gateScript(wayOut).split("\n");
    const start = lines.indexOf('exec "$@"');
    expect(lines.slice(start - 2, start)).toEqual(["read -r _ambit <&3 || exit 125", "exec 3>&-"]);
    expect(lines.slice(start + 1)).toEqual([")", "exit $?"]);
  }
});

test("the relay doesn't delay small packets (TCP_NODELAY)", async () => {
  const relay = await readFile(new URL("../../native/relay.c", import.meta.url), "utf8");
  expect(relay).toContain("set_option(descriptor, TCP, NO_DELAY);");
  expect(relay).toContain("set_option(server, TCP, NO_DELAY);");
});

test("an unknown setting is refused and named", () => {
  expect(configSchema.safeParse({ unconfigned: "allow" }).error?.message).toContain("unconfigned");
  expect(configSchema.parse({})).toMatchObject({ unconfined: "allow", hardLinks: "refuse", scratchMb: 256 });
});

describe("a host that can't confine names one that can", () => {
  test.each([
    ["darwin", "arm64", /darwin.*run Ambit on Linux/],
    ["win32", "x64", /win32.*run Ambit on Linux/],
    ["linux", "riscv64", /riscv64: run on x64 or arm64/],
  ])("%s on %s", (platform, architecture, message) => {
    expect(() => checkHost(platform, architecture)).toThrow(message);
  });

  test("Linux on x64 and arm64 can confine", () => {
    expect([checkHost("linux", "x64"), checkHost("linux", "arm64")]).toEqual(["x64", "arm64"]);
  });
});
