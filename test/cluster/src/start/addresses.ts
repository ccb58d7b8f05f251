/** What exists only in the cluster's own network namespaces, the same in each. */
export const podRange = "10.244.0.0/22";
export const serviceRange = "10.96.0.0/16";
export const apiService = "10.96.0.1";
/** Beyond the cluster: the way from the node leads there for every address that is nowhere else. */
export const worldGateway = "10.201.0.1";
export const worldAddress = "10.201.0.2";

/** The link between this host and the node, which the host's own network namespace has. */
export interface Link {
  /** This host's end. */
  readonly name: string;
  readonly host: string;
  /** A second address of this host. */
  readonly neighbour: string;
  readonly node: string;
}

/** From 10.128.0.0/10, in blocks of eight addresses. */
const blocks = 2 ** 19;
export const linkPrefix = 29;

/** A process id is unique on this machine, and so are its link and its addresses, but for ids 2^19 apart. */
export function linkOf(pid: number): Link {
  const block = pid % blocks;
  const address = (number: number) => {
    const at = block * 8 + number;
    return `10.${128 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`;
  };
  return { name: `ambit${pid}n`, host: address(1), node: address(2), neighbour: address(3) };
}
