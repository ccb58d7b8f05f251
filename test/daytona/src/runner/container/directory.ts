import type { Network, Substitution } from "../messages.js";

export interface Neighbour {
  readonly id: string;
  readonly network: Network;
  readonly substitutions: readonly Substitution[];
}

/** `*.suffix` matches every name below the suffix, but not the suffix itself. */
export function nameMatches(pattern: string, name: string): boolean {
  const wanted = pattern.toLowerCase();
  return wanted.startsWith("*.") ? name.endsWith(wanted.slice(1)) : wanted === name;
}

/** The names and addresses of a runner's network: sandboxes by address, hosts of the world by name. */
export class Directory {
  readonly #sandboxes = new Map<string, Neighbour>();
  readonly #hosts = new Map<string, string>();

  constructor(private readonly essentials: readonly string[]) {}

  setSandbox(address: string, neighbour: Neighbour): void {
    this.#sandboxes.set(address, neighbour);
  }

  removeSandbox(address: string): void {
    this.#sandboxes.delete(address);
  }

  /** @param address as from a socket. */
  sandbox(address: string | undefined): Neighbour | undefined {
    return this.#sandboxes.get(address?.replace(/^::ffff:/, "") ?? "");
  }

  addHost(name: string, address: string): void {
    this.#hosts.set(name, address);
  }

  /** The address of a name. */
  address(name: string): string | undefined {
    return this.#hosts.get(name.toLowerCase());
  }

  /** The name of a host with this name or address. */
  host(nameOrAddress: string): string | undefined {
    const wanted = nameOrAddress.toLowerCase();
    if (this.#hosts.has(wanted)) return wanted;
    return [...this.#hosts].find(([, address]) => address === wanted)?.[0];
  }

  get essentialAddresses(): string[] {
    return this.essentials.flatMap((name) => this.#hosts.get(name.toLowerCase()) ?? []);
  }

  /**
   * Whether this sandbox may reach this name through the proxy: by the name, or by the name's address. The address that the
   * sandbox connected to doesn't count, because the sandbox chooses both.
   */
  mayReach({ network }: Neighbour, name: string): boolean {
    const { domains, allowList } = network;
    if (this.essentials.includes(name)) return true;
    if (domains?.some((pattern) => nameMatches(pattern, name))) return true;
    const address = this.address(this.host(name) ?? name);
    if (allowList !== null) return address !== undefined && allowsAddress(allowList, address);
    return domains === null;
  }
}

const bits = (address: string) => address.split(".").reduce((number, part) => number * 256 + Number(part), 0);

function allowsAddress(ranges: readonly string[], address: string): boolean {
  return ranges.some((range) => {
    const [start = "", length = "32"] = range.split("/");
    const size = 2 ** (32 - Number(length));
    return Math.floor(bits(start) / size) === Math.floor(bits(address) / size);
  });
}
