import { proxyProgram } from "../../programs/proxy-program.js";
import { nearAttack } from "../near.js";
import { programAttack } from "../program-attack.js";

const noNeighbour = "no address 127.0.0.2 on the loopback";

/** The boundary lists 127.0.0.1 with the port of one server. */
export const networkAllowCidr = [
  nearAttack("network.allow-cidr"),
  programAttack({
    id: "network.allow-cidr/other-port",
    title: "reach another port of the listed address",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port }),
    program: `${proxyProgram}
attempt_all([b"127.0.0.1"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/other-address",
    title: "reach an address next to the listed one",
    parameters: ({ decoys }) =>
      decoys.neighbour === undefined ? noNeighbour : { port: decoys.neighbour.port },
    program: `${proxyProgram}
attempt_all([b"127.0.0.2"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/odd-spellings",
    title: "reach an unlisted address spelled in hexadecimal, octal, as one number, mapped, or with a dot",
    parameters: ({ decoys }) =>
      decoys.neighbour === undefined ? noNeighbour : { port: decoys.neighbour.port },
    program: `${proxyProgram}
attempt_all([b"2130706434", b"0x7f000002", b"0x7f.2", b"0177.0.0.2", b"127.2", b"127.0.0.2.", b"[::ffff:127.0.0.2]",
             b"::ffff:7f00:2", b"[::ffff:7f00:2]", b"127.0.0.1@127.0.0.2", b"127.0.0.1#.127.0.0.2"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/other-family",
    title: "reach the same host over IPv6",
    parameters: ({ decoys }) => (decoys.tcp6 === undefined ? "no IPv6 loopback" : { port: decoys.tcp6.port }),
    program: `${proxyProgram}
attempt_all([b"::1", b"[::1]", b"0:0:0:0:0:0:0:1", b"ip6-localhost"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-cidr/datagram",
    stoppedBy: ["network namespace"],
    title: "send a datagram to an unlisted port of the listed address",
    parameters: ({ decoys }) => ({ port: decoys.udp.port }),
    program: `
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(3)
        client.connect(("127.0.0.1", P["port"]))
        client.send(P["nonce"].encode())
        return leaks(client.recv(4096))
attempt("send", send)`,
  }),
  programAttack({
    id: "network.allow-cidr/another-sessions-list",
    title: "reach a host that only another open session lists",
    parameters: async ({ decoys, openAnother }) => {
      const { host, port } = decoys.tcp;
      await openAnother({ network: { allowlist: [`${host}:${port}`] } });
      return { port };
    },
    program: `${proxyProgram}
attempt_all([b"127.0.0.1"], P["port"])`,
  }),
] as const;
