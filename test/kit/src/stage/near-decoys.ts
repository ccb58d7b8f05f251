import { networkInterfaces } from "node:os";
import {
  commandOf,
  type DatagramDecoy,
  dialProgram,
  type Endpoint,
  type NearDecoy,
  type NearTarget,
  openDatagramDecoy,
  openStreamDecoy,
  outcomeOf,
  peerProgram,
  runProgram,
  type StreamDecoy,
} from "@ambit/attacks";
import { normaliseBoundary } from "@ambit/core";
import type { Boundary, Process, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import { z } from "zod";
import { KitScope, silentLog } from "./kit-scope.js";

/** Nothing is restricted. */
export const openBoundary: Boundary = normaliseBoundary({ enforcement: "strict" }).boundary;

type Open = (spec: SandboxSpec, scope: Scope) => Promise<Sandbox>;

/**
 * Decoys where sandboxes of the backend under test reach them unless something stops them: at this host's addresses, at a
 * sandbox's router, and in another sandbox. Those on loopback say nothing about a sandbox with a network of its own.
 */
export class NearDecoys {
  readonly #open: Open;
  readonly #secret: string;
  readonly #nextId: () => string;
  readonly #beyond: readonly NearTarget[];
  readonly #scope = new KitScope();
  #targets: Promise<readonly NearTarget[] | string> | undefined;

  /** @param beyond servers of the author's, for sandboxes that reach neither this host nor each other. */
  constructor(open: Open, secret: string, nextId: () => string, beyond: readonly Endpoint[] = []) {
    this.#open = open;
    this.#secret = secret;
    this.#nextId = nextId;
    this.#beyond = beyond.map((endpoint) => ({ beyond: endpoint }));
  }

  /** Where they are, or why there are none: even a sandbox without limits has no network. */
  targets(): Promise<readonly NearTarget[] | string> {
    this.#targets ??= this.#find();
    return this.#targets;
  }

  close(): Promise<void> {
    return this.#scope.close();
  }

  async #find(): Promise<readonly NearTarget[] | string> {
    // Every other place would be waited for in vain.
    if (this.#beyond.length > 0) return this.#beyond;
    const [tcp, udp] = await this.#serve();
    const ports = { tcp: tcp.endpoint.port, udp: udp.endpoint.port };
    const sandbox = await this.#openSandbox();
    const { links, router } = networkSchema.parse(
      JSON.parse(
        (await runProgram(sandbox, networkProgram, {})).stdout
          .split("\n")
          .find((line) => line.startsWith("{")) ?? "{}",
      ),
    );
    const own = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ family }) => family === "IPv4");
    const hosts = [...new Set([...own.map(({ address }) => address), ...(router === "" ? [] : [router])])];
    const onHost = hosts.map((host) => ({ host, ...ports }));
    // A policy may close one and leave the other open.
    if (links.length > 0) return [...onHost, ...(await this.#inPeer())];
    const seen = outcomeOf(await runProgram(sandbox, dialProgram, { targets: onHost, nonce: "" }));
    return seen.result === "reached" ? onHost : "a sandbox without limits has no network either";
  }

  async #serve(): Promise<readonly [StreamDecoy, DatagramDecoy]> {
    const tcp = await openStreamDecoy({ host: "0.0.0.0" }, this.#secret);
    const udp = await openDatagramDecoy("0.0.0.0", this.#secret);
    if (tcp === undefined || udp === undefined)
      throw new Error("the kit can't listen on this host's addresses");
    this.#scope.defer(() => tcp.close());
    this.#scope.defer(() => udp.close());
    return [tcp, udp];
  }

  async #inPeer(): Promise<readonly NearDecoy[]> {
    const peer = await this.#openSandbox();
    const server = await peer.spawn(commandOf(peerProgram, {}, { env: { DECOY_SECRET: this.#secret } }));
    this.#scope.defer(() => server.kill());
    return targetsSchema.parse(JSON.parse(await lineOf(server)));
  }

  async #openSandbox(): Promise<Sandbox> {
    const spec: SandboxSpec = {
      id: this.#nextId(),
      boundary: openBoundary,
      required: [],
      requiredPaths: [],
      onDecision: () => undefined,
      log: silentLog,
    };
    const sandbox = await this.#open(spec, this.#scope);
    this.#scope.defer(() => sandbox.close());
    return sandbox;
  }
}

const networkSchema = z.object({ links: z.array(z.string()), router: z.string() });
const targetsSchema = z.array(z.object({ host: z.string(), tcp: z.int(), udp: z.int() }));

const networkProgram = String.raw`
router = ""
for line in content("/proc/net/route").decode().split("\n")[1:]:
    parts = line.split()
    if len(parts) > 2 and parts[1] == "00000000" and parts[2] != "00000000":
        router = ".".join(str(byte) for byte in reversed(bytes.fromhex(parts[2])))
links = [name for _, name in socket.if_nameindex() if name != "lo"]
print(json.dumps({"links": links, "router": router}), flush=True)
`;

/** The first line after `RAN`. */
async function lineOf(server: Process): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = server.stdout.getReader();
  while (text.split("\n").length < 3 && text.length < 10_000) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader.releaseLock();
  return text.split("\n")[1] ?? "[]";
}
