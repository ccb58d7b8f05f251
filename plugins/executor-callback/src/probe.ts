import { once } from "node:events";
import { createServer } from "node:http";
import type { Capability, Finding, NetworkRule } from "@ambit/core/plugin";
import { AddressRefused, type Lookup } from "@ambit/egress";
import { openResponse } from "@ambit/egress/client";
import { configSchema } from "./config.js";
import { Outbound } from "./outbound.js";

/**
 * Posts to listeners on this host's loopback: to a listed destination, which must arrive, and to others, of which
 * nothing may. What is shown is the mechanism, so a deployer's own `allowedRanges` stay out of it.
 *
 * @param open what is probed; tests put a careless one in its place.
 */
export async function probeCallback(
  signal: AbortSignal,
  open: (lookup: Lookup) => Pick<Outbound, "send" | "close"> = (lookup) =>
    new Outbound(configSchema.parse({ privateHosts: "allow" }), lookup),
): Promise<readonly Finding[]> {
  await using target = await listen(() => undefined);
  await using lure = await listen(() => `${target.origin("127.0.0.1")}/`);
  const outbound = open(toLoopback);
  try {
    const trial = { outbound, signal, target, lure };
    return [
      await find("network.allow-host", trial, {
        host: "listed.invalid",
        listed: [host("listed.invalid"), range("127.0.0.1/32")],
        attacks: {
          "to a name off the list": [host("other.invalid"), range("127.0.0.1/32")],
          "to a listed name that resolves to an unlisted loopback address": [host("listed.invalid")],
        },
      }),
      await find("network.allow-cidr", trial, {
        host: "127.0.0.1",
        listed: [range("127.0.0.1/32")],
        attacks: {
          "to an address off the list": [range("127.0.0.2/32")],
          "to another port than the listed one": [{ ...range("127.0.0.1/32"), port: 9 }],
        },
      }),
    ];
  } finally {
    outbound.close();
  }
}

/** Every name resolves to the loopback address, as with a name server that an attacker owns. */
const toLoopback: Lookup = async () => ["127.0.0.1"];

interface ProbeContext {
  readonly outbound: Pick<Outbound, "send">;
  readonly signal: AbortSignal;
  readonly target: Listener;
  /** Answers with a redirect to the target. */
  readonly lure: Listener;
}

interface Experiment {
  readonly host: string;
  readonly listed: readonly NetworkRule[];
  readonly attacks: Readonly<Record<string, readonly NetworkRule[]>>;
}

async function find(
  capability: Capability,
  trial: ProbeContext,
  { host, listed, attacks }: Experiment,
): Promise<Finding> {
  const { target, lure, signal } = trial;
  const fix = "see the runner's log; this host's loopback interface must let the runner talk to itself";
  const failed = (reason: string): Finding => ({ capability, proven: false, reason, fix });
  if ((await arrivals(trial, `${target.origin(host)}/`, listed)) !== 1) {
    return failed("the control, a post to a listed loopback listener, did not arrive");
  }
  for (const [what, rules] of Object.entries(attacks)) {
    if ((await arrivals(trial, `${target.origin(host)}/`, rules)) !== 0)
      return failed(`a post ${what} arrived`);
  }
  const before = target.count();
  // Without a guard, but unlike fetch() never through a proxy of this process's variables.
  const post = async (url: string) => {
    const response = await openResponse({ method: "POST", url: new URL(url), headers: {} }, {}, signal);
    response.destroy();
    return response.headers.location;
  };
  await post((await post(lure.origin("127.0.0.1"))) ?? lure.origin("127.0.0.1"));
  if (target.count() !== before + 1)
    return failed("the control, a client that follows a redirect, did not arrive");
  if ((await arrivals(trial, `${lure.origin(host)}/`, listed)) !== 0)
    return failed("a redirect was followed");
  const kinds = [...Object.keys(attacks), "behind a redirect"].join(", ");
  return {
    capability,
    proven: true,
    how: `a post to a listed loopback listener arrived; nothing arrived of posts ${kinds}`,
  };
}

/** How many requests reached the target because of one post under these rules. */
async function arrivals(
  { outbound, signal, target }: ProbeContext,
  url: string,
  rules: readonly NetworkRule[],
) {
  const before = target.count();
  const boundary = {
    network: { mode: "allowlist", rules },
    filesystem: { mode: "on", readable: [], writable: [], denied: [] },
    resources: {},
    secrets: "visible",
    enforcement: "strict",
  } as const;
  const posting = { url: new URL(url), method: "POST", headers: {}, body: "{}" } as const;
  try {
    await outbound.send(posting, { boundary, signal, mayAct: () => true });
  } catch (error) {
    // Refused is what an attack should be; anything else says nothing about the boundary.
    if (!(error instanceof AddressRefused)) throw error;
  }
  return target.count() - before;
}

interface Listener extends AsyncDisposable {
  origin(host: string): string;
  count(): number;
}

async function listen(redirect: () => string | undefined): Promise<Listener> {
  let count = 0;
  const server = createServer((_request, response) => {
    count += 1;
    const location = redirect();
    response.writeHead(location === undefined ? 200 : 307, location === undefined ? {} : { location });
    response.end();
  });
  // Every process of this host can connect.
  server.maxConnections = 16;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string")
    throw new TypeError("the probe's listener has no port");
  return {
    origin: (host) => `http://${host}:${address.port}`,
    count: () => count,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function host(name: string): NetworkRule {
  return { kind: "host", name, subdomains: false };
}

function range(cidr: string): NetworkRule {
  return { kind: "range", cidr, family: 4 };
}
