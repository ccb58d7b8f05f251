import type { Decoys } from "../decoys/decoys.js";
import { entryOf } from "../decoys/place.js";
import { proxyProgram } from "../programs/proxy-program.js";
import { nearAttack } from "./near.js";
import { programAttack } from "./program-attack.js";

const noNeighbour = "no address 127.0.0.2 on the loopback";

/** The boundary lists the address of one server, with its port. */
export const networkAllowCidr = [
  nearAttack("network.allow-cidr"),
  programAttack({
    id: "network.allow-cidr/other-port",
    title: "reach another port of the listed address",
    parameters: ({ decoys }) => decoys.tcp,
    program: `${proxyProgram}
attempt_all([P["host"].encode()], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/other-address",
    title: "reach an address next to the listed one",
    parameters: ({ decoys }) => besideListed(decoys) ?? noNeighbour,
    program: `${proxyProgram}
attempt_all([P["host"].encode()], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/odd-spellings",
    title: "reach an unlisted address spelled in hexadecimal, octal, as one number, mapped, or with a dot",
    parameters: ({ decoys }) => {
      const beside = besideListed(decoys);
      return beside === undefined ? noNeighbour : { ...beside, listed: decoys.listed.host };
    },
    program: `${proxyProgram}
between = [("%s%s%s" % (P["listed"], mark, P["host"])).encode() for mark in ("@", "#.")]
attempt_all(spellings(P["host"]) + between, P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/other-family",
    title: "reach the same host over IPv6",
    parameters: ({ decoys }) => decoys.tcp6 ?? "the decoys have no IPv6 address",
    program: `${proxyProgram}
import ipaddress
exploded = ipaddress.ip_address(P["host"]).exploded.encode()
attempt_all([P["host"].encode(), b"[%s]" % P["host"].encode(), exploded, b"ip6-localhost"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/datagram",
    stoppedBy: ["network namespace"],
    title: "send a datagram to an unlisted port of the listed address",
    parameters: ({ decoys }) => decoys.udp,
    program: `
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(3)
        client.connect((P["host"], P["port"]))
        client.send(P["nonce"].encode())
        return leaks(client.recv(4096))
attempt("send", send)`,
  }),
  programAttack({
    id: "network.allow-cidr/another-sessions-list",
    title: "reach a host that only another open session lists",
    parameters: async ({ decoys, openAnother }) => {
      await openAnother({ network: { allowlist: [entryOf(decoys.tcp)] } });
      return decoys.tcp;
    },
    program: `${proxyProgram}
attempt_all([P["host"].encode()], P["port"])`,
  }),
] as const;

/** At the listed port, which other programs may use: so that only the address differs. */
const besideListed = ({ rebound, neighbour }: Decoys) => rebound ?? neighbour;
