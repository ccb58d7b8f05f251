import { gatewayAddress, sandboxAddress } from "./addresses.js";
import { base, linkName, type Rules, removalOf, rulesOf } from "./firewall.js";
import { run } from "./run.js";

/** The runner's network: the world's side, and a link to every sandbox. All of it is in this process's namespace. */
export class Links {
  /** One at a time: two transactions of nft at once may refuse each other. */
  #firewall: Promise<unknown> = Promise.resolve();
  readonly #connected = new Set<number>();

  static async create(): Promise<Links> {
    const links = new Links();
    await ip(["link set lo up"]);
    await links.#nft(base);
    return links;
  }

  async addHost(address: string): Promise<void> {
    await ip([`address add ${address}/32 dev lo`]);
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
    await run("nsenter", [`--net=/proc/${pid}/ns/net`, "ip", "-batch", "-"], insideBatch(rules.index));
  }

  async apply(rules: Rules): Promise<void> {
    await this.#nft(rulesOf(rules));
  }

  /** Does nothing where there is no link. */
  async disconnect(index: number): Promise<void> {
    if (!this.#connected.delete(index)) return;
    // The kernel takes the link away too, with the sandbox's namespace: whoever is first.
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
    // Gone before it was looked for, or between that and the deletion.
    const isGone = error instanceof Error && /Cannot find device|No such device/.test(error.message);
    if (gone === "must be there" || !isGone) throw error;
  }
}

const insideBatch = (index: number) => `link set eth0 addrgenmode none
address add ${sandboxAddress(index)}/24 dev eth0
link set lo up
link set eth0 up
route add default via ${gatewayAddress(index)}
`;
