import {
  gatewayAddress,
  gatewayAddress6,
  sandboxAddress,
  sandboxAddress6,
  worldAddress6,
} from "../addresses.js";
import { run } from "../container/run.js";
import type { Setup } from "../messages.js";
import { base, linkName, type Rules, removalOf, rulesOf } from "./firewall.js";

/** The runner's network: the world's side, and a link to every sandbox. All of it is in this process's namespace. */
export class Links {
  /** One at a time: concurrent transactions of nft may fail. */
  #firewall: Promise<unknown> = Promise.resolve();
  readonly #connected = new Set<number>();

  private constructor(private readonly leaks: Setup["leaks"]) {}

  static async create(leaks: Setup["leaks"]): Promise<Links> {
    const links = new Links(leaks);
    await ip(["link set lo up"]);
    await links.#nft(base(leaks));
    return links;
  }

  async addHost(address: string): Promise<void> {
    await ip([`address add ${address}/32 dev lo`]);
    if (this.#hasIpv6) await ip([`address add ${worldAddress6(address)}/128 dev lo nodad`]);
  }

  /** Links a sandbox whose first process has this pid. The rules hold before the link is up. */
  async connect(pid: number, rules: Rules): Promise<void> {
    const link = linkName(rules.index);
    this.#connected.add(rules.index);
    await Promise.all([
      this.apply(rules),
      ip([
        `link add ${link} type veth peer name eth0 netns ${pid}`,
        `address add ${gatewayAddress(rules.index)}/24 dev ${link}`,
      ]),
    ]);
    await ip([`link set ${link} up`]);
    if (this.#hasIpv6) await ip([`address add ${gatewayAddress6(rules.index)}/64 dev ${link} nodad`]);
    const inside = [...insideBatch(rules.index), ...(this.#hasIpv6 ? insideBatch6(rules.index) : [])];
    await run("nsenter", [`--net=/proc/${pid}/ns/net`, "ip", "-batch", "-"], `${inside.join("\n")}\n`);
  }

  get #hasIpv6(): boolean {
    return this.leaks.includes("ipv6");
  }

  async apply(rules: Rules): Promise<void> {
    await this.#nft(rulesOf(rules));
  }

  /** Does nothing if there is no link. */
  async disconnect(index: number): Promise<void> {
    if (!this.#connected.delete(index)) return;
    // The kernel also removes the link together with the sandbox's namespace, possibly first.
    await ip([`link delete ${linkName(index)}`], "may be gone");
    await this.#nft(removalOf(index));
  }

  #nft(text: string): Promise<void> {
    const done = this.#firewall.then(() => run("nft", ["-f", "-"], text));
    this.#firewall = done.catch(() => {});
    return done;
  }
}

async function ip(
  lines: readonly string[],
  gone: "may be gone" | "must be there" = "must be there",
): Promise<void> {
  try {
    await run("ip", ["-batch", "-"], `${lines.join("\n")}\n`);
  } catch (error) {
    // It disappeared before or during the deletion.
    const isGone = error instanceof Error && /Cannot find device|No such device/.test(error.message);
    if (gone === "must be there" || !isGone) throw error;
  }
}

const insideBatch = (index: number) => [
  "link set eth0 addrgenmode none",
  `address add ${sandboxAddress(index)}/24 dev eth0`,
  "link set lo up",
  "link set eth0 up",
  `route add default via ${gatewayAddress(index)}`,
];

const insideBatch6 = (index: number) => [
  `address add ${sandboxAddress6(index)}/64 dev eth0 nodad`,
  `route add ::/0 via ${gatewayAddress6(index)}`,
];
