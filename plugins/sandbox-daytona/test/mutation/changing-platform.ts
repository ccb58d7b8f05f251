import { HttpRelay } from "@ambit/fakes/http-relay";
import { z } from "zod";

/** The body of a request for a sandbox, or to change its network, as the SDK sends it. */
export type Order = Readonly<Record<string, unknown>>;

/** A text that the guest daemon's program contains exactly once, and its replacement. */
export interface GuestChange {
  readonly find: string;
  readonly replace: string;
}

export interface PlatformChange {
  /** An order as the platform gets it. @param secretOf the value of an organisation's secret, by its name */
  order?(order: Order, secretOf: (secret: string) => string): Order;
  /** Whether the platform reports the original order as applied, as if it hadn't carried it out. */
  readonly isConcealed?: boolean;
  readonly guest?: readonly GuestChange[];
  /** All sandboxes are the first one. */
  readonly isOneMachine?: boolean;
  /** Deleted sandboxes stay. */
  readonly keepsDeleted?: boolean;
}

const secretSchema = z.object({ name: z.string(), value: z.string() });
const settings = /^\/api\/sandbox(?:\/([^/]+)\/network-settings)?$/;

/** What stands between a backend and a loopback Daytona. */
export class ChangingPlatform {
  readonly #relay: HttpRelay;
  readonly #change: PlatformChange;
  readonly #target: URL;
  readonly #secrets = new Map<string, string>();
  /** What was asked for and didn't go on, by the sandbox's id or, before it has one, its name. */
  readonly #concealed = new Map<string, Order>();
  #first: string | undefined;
  #url = "";

  /** @param apiUrl the loopback's. */
  constructor(apiUrl: string, change: PlatformChange) {
    this.#target = new URL(apiUrl);
    this.#change = change;
    this.#relay = new HttpRelay(
      { port: Number(this.#target.port) },
      {
        request: (asked) => {
          const { method, url, body } = asked;
          if (method === "POST" && url === "/api/secret")
            this.#learn(secretSchema.parse(JSON.parse(body.toString())));
          if (method === "POST" && settings.test(url)) return { ...asked, body: this.#ordered(url, body) };
          if (method === "POST" && url.endsWith("/files/bulk-upload"))
            return { ...asked, body: this.#guest(body) };
          if (method === "DELETE" && this.#change.keepsDeleted && /^\/api\/sandbox\/[^/]+$/.test(url))
            return { ...asked, method: "GET" };
          return { ...asked, url: this.#machineIn(url) };
        },
        response: ({ url }) =>
          /^\/api\/sandbox(?:\/|$)/.test(url) ? (said) => this.#reported(said) : undefined,
      },
    );
  }

  /** @returns the plugin's `apiUrl`. */
  async listen(): Promise<string> {
    this.#url = `http://127.0.0.1:${await this.#relay.listen()}`;
    return `${this.#url}${this.#target.pathname}`;
  }

  close(): Promise<void> {
    return this.#relay.close();
  }

  #learn({ name, value }: z.output<typeof secretSchema>): void {
    this.#secrets.set(name, value);
  }

  #ordered(url: string, body: Buffer): Buffer {
    const asked: Order = JSON.parse(body.toString());
    const changed = this.#change.order?.(asked, (name) => this.#secrets.get(name) ?? "") ?? asked;
    const key = settings.exec(url)?.[1] ?? String(asked.name);
    const differing = Object.entries(asked).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(changed[name]),
    );
    // Names that the platform reports differently aren't changed here.
    this.#concealed.set(key, { ...this.#concealed.get(key), ...Object.fromEntries(differing) });
    return Buffer.from(JSON.stringify(changed));
  }

  #guest(body: Buffer): Buffer {
    const text = body.toString("latin1");
    const changes = this.#change.guest ?? [];
    if (!text.includes("bridge.cjs")) return body;
    return Buffer.from(
      changes.reduce((left, { find, replace }) => {
        const found = left.split(find).length - 1;
        if (found !== 1)
          throw new Error(
            `the guest daemon has ${found} times: ${find}: the mutant must follow the code it changes`,
          );
        return left.replace(find, () => replace);
      }, text),
      "latin1",
    );
  }

  /** The platform's own commands in any sandbox are run in the first one. */
  #machineIn(url: string): string {
    const id = /^\/toolbox\/([^/]+)\/process\/execute$/.exec(url)?.[1];
    if (id === undefined || this.#change.isOneMachine !== true) return url;
    this.#first ??= id;
    return url.replace(id, this.#first);
  }

  /** Also with the address of its toolbox here. */
  #reported(said: Readonly<Record<string, unknown>>): object {
    const keys = this.#change.isConcealed === true ? [String(said.name), String(said.id)] : [];
    return {
      ...Object.assign({}, said, ...keys.map((key) => this.#concealed.get(key))),
      ...("toolboxProxyUrl" in said ? { toolboxProxyUrl: `${this.#url}/toolbox` } : {}),
    };
  }
}
