import { describe, expect, it } from "vitest";
import { output, useLoopback } from "./loopback.js";

const world = [
  { name: "api.allowed.test", address: "10.99.0.10", ports: [80, 8080, 443] },
  { name: "sub.wild.test", address: "10.99.0.11" },
  { name: "other.test", address: "10.99.0.12" },
];

/** curl's result for a URL: the status, or `blocked` after a second. */
const curl = (target: string, options = "", seconds = 1) =>
  `curl -s -m ${seconds} -o /dev/null -w '%{http_code}' ${options} ${target} | sed 's/^000$/blocked/'`;

/** For requests that must arrive: a busy machine may be slow. */
const patient = 10;

const udp = (address: string) =>
  `python3 -c "import socket; s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1); s.sendto(b'x', ('${address}', 80)); print(s.recv(9).decode())" 2>/dev/null || echo blocked`;

describe.concurrent("a sandbox's network", () => {
  const fixture = useLoopback({ world });
  const create = (params: object) => fixture().daytona.create({ snapshot: "ambit", ...params });

  it("reaches the world's hosts without limits: by name, by address, by UDP", async () => {
    const sandbox = await create({});
    expect(await output(sandbox, curl("http://api.allowed.test/open", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://10.99.0.12:80/", "", patient))).toBe("200");
    expect(await output(sandbox, udp("10.99.0.12"))).toBe("pong");
    const { world: hosts } = fixture().loopback;
    expect(hosts.requests()).toContainEqual(
      expect.objectContaining({ host: "api.allowed.test", url: "/open", sandboxId: sandbox.id }),
    );
    expect(hosts.arrivals()).toContainEqual(
      expect.objectContaining({ host: "other.test", protocol: "udp", sandboxId: sandbox.id }),
    );
    expect(hosts.queries()).toContainEqual({ sandboxId: sandbox.id, name: "api.allowed.test" });
  });

  it("reaches nothing when all is blocked, and resolves no name", async () => {
    const sandbox = await create({ networkBlockAll: true, networkAllowList: "10.99.0.10/32" });
    const tries = [curl("http://api.allowed.test/"), curl("http://10.99.0.10/"), udp("10.99.0.10")];
    expect(await output(sandbox, tries.join("; "))).toBe("blockedblockedblocked");
    const { world: hosts } = fixture().loopback;
    expect(hosts.arrivals().filter(({ sandboxId }) => sandboxId === sandbox.id)).toEqual([]);
    expect(hosts.queries().filter(({ sandboxId }) => sandboxId === sandbox.id)).toEqual([]);
  });

  it("reaches listed ranges only", async () => {
    const sandbox = await create({ networkAllowList: "10.99.0.10/31, 192.0.2.0/24" });
    expect(await output(sandbox, curl("http://10.99.0.10:8080/", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://10.99.0.11/", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://10.99.0.12/"))).toBe("blocked");
    expect(await output(sandbox, udp("10.99.0.12"))).toBe("blocked");
  });

  it("reaches listed names only, at any address", async () => {
    const sandbox = await create({ domainAllowList: "api.allowed.test,*.wild.test" });
    expect(await output(sandbox, curl("http://api.allowed.test/", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://sub.wild.test/", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://other.test/", "", patient))).toBe("403");
    const { world: hosts } = fixture().loopback;
    // A request with an allowed host's name to another host's address arrives at the allowed host.
    expect(await output(sandbox, curl("http://10.99.0.12/", "-H 'Host: api.allowed.test'", patient))).toBe(
      "200",
    );
    const own = hosts.requests().filter(({ sandboxId }) => sandboxId === sandbox.id);
    expect(own.map(({ host }) => host)).toEqual(["api.allowed.test", "sub.wild.test", "api.allowed.test"]);
    expect(await output(sandbox, curl("http://10.99.0.10:8080/"))).toBe("blocked");
    expect(await output(sandbox, curl("http://10.99.0.10/", "", patient))).toBe("403");
    // Directly to the proxy's ports.
    expect(await output(sandbox, curl("http://10.98.1.1:3128/", "-H 'Host: api.allowed.test'"))).toBe(
      "blocked",
    );
  });

  it("checks a TLS client's server name", async () => {
    const sandbox = await create({ domainAllowList: "api.allowed.test" });
    const { world: hosts } = fixture().loopback;
    const own = () => hosts.arrivals().filter(({ sandboxId }) => sandboxId === sandbox.id);
    await output(sandbox, curl("https://other.test/", "-k --resolve other.test:443:10.99.0.10"));
    expect(own()).toEqual([]);
    await output(sandbox, curl("https://api.allowed.test/", "-k", patient));
    expect(own()).toMatchObject([{ host: "api.allowed.test", port: 443 }]);
  });

  it("has limits that can change while it runs, and that are read back", async () => {
    const sandbox = await create({});
    expect(await output(sandbox, curl("http://10.99.0.10/", "", patient))).toBe("200");
    await sandbox.updateNetworkSettings({ networkBlockAll: true });
    expect(await output(sandbox, curl("http://10.99.0.10/"))).toBe("blocked");
    await sandbox.updateNetworkSettings({ networkAllowList: "10.99.0.10/32" });
    await sandbox.refreshData();
    expect(sandbox).toMatchObject({ networkBlockAll: false, networkAllowList: "10.99.0.10/32" });
    expect(await output(sandbox, curl("http://10.99.0.10/", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://10.99.0.11/"))).toBe("blocked");
  });

  it("reaches neither another sandbox nor this machine's loopback", async () => {
    const [one, other] = await Promise.all([create({}), create({})]);
    const address =
      fixture()
        .loopback.sandboxes()
        .find(({ id }) => id === other.id)?.address ?? "";
    expect(await output(other, curl(`http://${address}:2280/version`, "", patient))).toBe("200");
    expect(await output(one, curl(`http://${address}:2280/version`))).toBe("blocked");
    const api = new URL(fixture().loopback.apiUrl);
    expect((await fetch(`${api.origin}/nothing`)).status).toBe(401);
    expect(await output(one, curl(`http://127.0.0.1:${api.port}/nothing`))).toBe("blocked");
    expect(await output(one, curl(`http://10.98.1.1:${api.port}/nothing`))).toBe("blocked");
  });
});

describe("an organisation that can't limit the network", () => {
  const refused = useLoopback({ world, organization: { networkOverride: "refused" } });
  const ignored = useLoopback({ world, organization: { networkOverride: "ignored" } });

  it("refuses the settings with 403", async () => {
    const { daytona, loopback } = refused();
    await expect(daytona.create({ snapshot: "ambit", networkBlockAll: true })).rejects.toMatchObject({
      statusCode: 403,
    });
    expect(loopback.sandboxes()).toEqual([]);
    const sandbox = await daytona.create({ snapshot: "ambit" });
    // apps/api/src/sandbox/controllers/sandbox.controller.ts: another status at a change.
    await expect(sandbox.updateNetworkSettings({ networkBlockAll: true })).rejects.toMatchObject({
      statusCode: 400,
      message: expect.stringContaining("cannot be overridden at the sandbox level"),
    });
  });

  it("or accepts and returns them without applying them", async () => {
    const { daytona, loopback } = ignored();
    const sandbox = await daytona.create({ snapshot: "ambit", networkBlockAll: true });
    expect(sandbox.networkBlockAll).toBe(true);
    expect(await output(sandbox, curl("http://api.allowed.test/", "", patient))).toBe("200");
    expect(loopback.sandboxes()).toMatchObject([{ network: { blockAll: false } }]);
  });
});

describe.concurrent("an organisation with essential hosts", () => {
  const fixture = useLoopback({ world, organization: { essentials: ["other.test"] } });

  it.each([
    [{ networkBlockAll: true }],
    [{ networkAllowList: "10.99.0.11/32" }],
    [{ domainAllowList: "sub.wild.test" }],
  ])("reaches them in spite of %j", async (params) => {
    const sandbox = await fixture().daytona.create({ snapshot: "ambit", ...params });
    expect(await output(sandbox, curl("http://other.test/", "", patient))).toBe("200");
    expect(await output(sandbox, curl("http://api.allowed.test/"))).not.toBe("200");
  });
});

describe("an organisation with an open resolver", () => {
  const fixture = useLoopback({ world, organization: { openResolver: true } });

  it("resolves names for a sandbox that reaches nothing else", async () => {
    const { daytona, loopback } = fixture();
    const sandbox = await daytona.create({ snapshot: "ambit", networkBlockAll: true });
    expect(await output(sandbox, "getent hosts api.allowed.test | grep -o 10.99.0.10")).toBe("10.99.0.10");
    await output(sandbox, "getent hosts carried-out.other.test");
    const asked = { sandboxId: sandbox.id, name: "carried-out.other.test" };
    expect(loopback.world.queries()).toContainEqual(asked);
    expect(await output(sandbox, curl("http://api.allowed.test/"))).toBe("blocked");
  });
});
