import { describe, expect, it } from "vitest";
import {
  type CertificateMaker,
  ChangingNames,
  CredentialHost,
  demandFor,
  startDecoys,
} from "../src/index.js";

/** Addresses that any Linux host has, and that aren't the default. */
const elsewhere = { address: "127.0.0.3", neighbour: "127.0.0.4" };

const unused: CertificateMaker = {
  certificate: "",
  contextFor: () => Promise.reject(new Error("nothing connects")),
  certificateFor: () => Promise.reject(new Error("nothing asks")),
};

describe("where decoys listen", () => {
  it.each([
    [{ address: "localhost", neighbour: "127.0.0.4" }, /^address must be an IPv4 address/],
    [{ address: "127.0.0.3", neighbour: "::1" }, /^neighbour must be an IPv4 address/],
    [{ address: "127.0.0.3", neighbour: "127.0.0.3" }, /^neighbour must be another address/],
  ])("is refused for %o", (addresses, message) => {
    expect(() => new ChangingNames(addresses)).toThrow(message);
  });

  it("is where the kit's names lead", async () => {
    const { lookup, place } = new ChangingNames(elsewhere);
    const { address, neighbour } = elsewhere;
    expect(await lookup(place.listedName)).toEqual([address]);
    expect(await lookup(place.unlistedName ?? "")).toEqual([address]);
    expect(await lookup("git.ambit-keys.test")).toEqual([address]);
    const alternating = "alternating.ambit-listed.test";
    expect([await lookup(alternating), await lookup(alternating)]).toEqual([[address], [neighbour]]);
  });

  it("is what boundaries list, and nothing beside it", async () => {
    const { place } = new ChangingNames(elsewhere);
    const decoys = await startDecoys(undefined, place);
    const claims = ["network.allow-cidr", "network.allow-host"] as const;
    const rules = demandFor("network.allow-host", claims, decoys).boundary.network.rules;
    expect(rules).toEqual([
      { kind: "host", name: place.listedName, subdomains: false },
      { kind: "host", name: "ambit-listed.test", subdomains: true },
      { kind: "range", cidr: "127.0.0.3/32", family: 4, port: decoys.listed.port },
    ]);
    const { tcp, udp, listed, neighbour, rebound, onLoopback, tcp6 } = decoys;
    expect([tcp, udp, listed].map(({ host }) => host)).toEqual(Array(3).fill(elsewhere.address));
    expect([neighbour?.host, rebound?.host]).toEqual([elsewhere.neighbour, elsewhere.neighbour]);
    expect(rebound?.port).toBe(listed.port);
    expect(onLoopback.host).toBe("127.0.0.1");
    expect(tcp6).toBeUndefined();
    await decoys.close();
  });

  it("must be that of the host of credentials", async () => {
    const { place } = new ChangingNames(elsewhere);
    const host = await CredentialHost.open(unused, unused);
    await expect(startDecoys(host, place)).rejects.toThrow(
      /^credentialHost must be opened with names\.place/,
    );
    await host.close();
  });

  it("must be this host's", async () => {
    // Reserved for documentation: no host has it.
    const { place } = new ChangingNames({ ...elsewhere, neighbour: "192.0.2.1" });
    await expect(startDecoys(undefined, place)).rejects.toThrow("the kit can't listen on 192.0.2.1");
  });
});
