/** Where the tests' cluster comes from, and Debian's packages of what it runs besides its own programs. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The programs may lie beside the checkout, as in CI. */
const beside = fileURLToPath(new URL("../../shared/cluster", import.meta.url));

/** The folder of the cluster's programs: `AMBIT_CLUSTER`, which may be empty to have none. Undefined without one. */
export function clusterFolder() {
  const { AMBIT_CLUSTER: given } = process.env;
  if (given !== undefined) return given === "" ? undefined : given;
  return existsSync(`${beside}/programs.tar.xz`) ? beside : undefined;
}

/** In CI as root on Linux a cluster whose programs are there must start: `AMBIT_MUST_RUN_CLUSTER`. */
export const isClusterDemanded =
  Boolean(process.env.CI) &&
  process.platform === "linux" &&
  process.getuid?.() === 0 &&
  clusterFolder() !== undefined;

const reason = "the tests' cluster runs it";
export const clusterPackages = [
  { name: "containernetworking-plugins", brings: "/usr/lib/cni/ptp", reason },
  { name: "iproute2", brings: "ip", reason },
  { name: "iptables", brings: "iptables", reason },
  { name: "openssl", brings: "openssl", reason },
  { name: "xz-utils", brings: "xz", reason },
];
