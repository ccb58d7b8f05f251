import { HttpRelay } from "@ambit/fakes/http-relay";
import type { ContainerCreateOptions } from "dockerode";

export type Order = ContainerCreateOptions;

export interface EngineChange {
  /** A container's order, as the engine gets it. */
  change(order: Order): Order;
  /** Whether it reports the original order as applied, as if the backend had ordered that. */
  readonly isConcealed: boolean;
}

/**
 * What stands between a backend and its engine, and changes the orders of containers.
 *
 * @param socket the engine's.
 */
export function changingEngine(socket: string, { change, isConcealed }: EngineChange): HttpRelay {
  const orders = new Map<string, Order>();
  const orderIn = ({
    method,
    url,
    body,
  }: {
    method: string;
    url: string;
    body: Buffer;
  }): Order | undefined =>
    method === "POST" && /\/containers\/create\b/.test(url) ? JSON.parse(body.toString()) : undefined;
  return new HttpRelay(
    { socketPath: socket },
    {
      request: (asked) => {
        const order = orderIn(asked);
        return order === undefined ? asked : { ...asked, body: Buffer.from(JSON.stringify(change(order))) };
      },
      response: (asked) => {
        const order = orderIn(asked);
        if (order !== undefined)
          return (said) => {
            orders.set(String(said.Id), order);
            return said;
          };
        const [, inspected] = /\/containers\/([0-9a-f]+)\/json$/.exec(asked.url) ?? [];
        const shown = inspected === undefined ? undefined : orders.get(inspected);
        return isConcealed && shown !== undefined
          ? (said) => reported(said, shown, change(shown))
          : undefined;
      },
    },
  );
}

/** What `inspect` says, with the order's own words. */
function reported(said: Readonly<Record<string, unknown>>, order: Order, changed: Order): object {
  const asked = new Map<string, unknown>(Object.entries(order.HostConfig ?? {}));
  const changes = Object.entries(changed.HostConfig ?? {})
    .filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(asked.get(name)))
    .map(([name]) => [name, asked.get(name) ?? concealed[name]]);
  const host = Object.fromEntries(changes);
  return {
    ...said,
    HostConfig: { ...Object(said.HostConfig), ...order.HostConfig, ...host },
    Config: { ...Object(said.Config), User: order.User },
    ...("Mounts" in host && Array.isArray(said.Mounts)
      ? { Mounts: said.Mounts.map((mount) => ({ ...mount, RW: false })) }
      : {}),
    ...("NetworkMode" in host ? { NetworkSettings: { Networks: { none: {} } } } : {}),
  };
}

/** What an engine says of a setting that isn't ordered. */
const concealed: Readonly<Record<string, unknown>> = {
  MaskedPaths: ["/proc/kcore", "/proc/keys"],
  ReadonlyPaths: ["/proc/sys", "/proc/sysrq-trigger"],
  PidMode: "",
  UsernsMode: "",
};
