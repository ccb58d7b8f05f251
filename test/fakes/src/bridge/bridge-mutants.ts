import type { Patch } from "./changed-bridge.ts";

/** One mechanism that is taken out of the bridge's way into a sandbox. */
export interface BridgeMutant {
  readonly name: string;
  readonly patches: readonly Patch[];
  /** What the probe then says of `inbound.ports`. */
  readonly reason: RegExp;
}

const entrances = (find: string, replace: string): Patch => ({ file: "host/connections.js", find, replace });

const ask = "const connection = await this.#ask(port);";

/**
 * Each mechanism of connections into a sandbox that isn't part of a container's order. Connections end with the sandbox's
 * processes, whose end the order's PID namespace guarantees, and by the bridge, by the channels and by the pipe besides.
 */
export const bridgeMutants: readonly BridgeMutant[] = [
  {
    name: "the comparison of a port with the list",
    patches: [entrances("!this.#ports().includes(port)", "false")],
    reason: /a port that isn't listed was reached/,
  },
  {
    name: "connections made by the guest daemon only",
    patches: [
      entrances(
        ask,
        `let connection = await this.#ask(port);
        if (connection === undefined) {
          const { createConnection } = await import("node:net");
          const { once } = await import("node:events");
          const made = createConnection({ host: "127.0.0.1", port });
          if (await once(made, "connect").then(() => true, () => false)) connection = made;
        }`,
      ),
    ],
    reason: /a server on this host's loopback was reached/,
  },
  {
    name: "a way in for each sandbox",
    patches: [
      entrances("export class Entrances {", "const all = [];\nexport class Entrances {"),
      entrances("this.#ports = ports;", "this.#ports = ports; all.push(this);"),
      entrances(
        ask,
        `let connection;
        for (const one of all) connection ??= await one.#ask(port);`,
      ),
    ],
    reason: /another session's server was reached/,
  },
];
