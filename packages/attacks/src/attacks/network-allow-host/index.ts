import { changingNames } from "../../decoys/changing-names.js";
import { proxyProgram } from "../../programs/proxy-program.js";
import { nearAttack } from "../near.js";
import { programAttack } from "../program-attack.js";
import { tlsAttacks } from "./server-name.js";

const addressOf = ({ address, port }: { readonly address?: string; readonly port: number }) =>
  address?.includes(":") ? `[${address}]:${port}` : `${address ?? "127.0.0.1"}:${port}`;

/**
 * The boundary lists the name `localhost` and, if ranges can be listed, the address and port of one server: so the name
 * is listed for every port, but its address only for one.
 */
export const networkAllowHost = [
  nearAttack("network.allow-host"),
  programAttack({
    id: "network.allow-host/literal-address",
    title: "reach an unlisted address directly, through HTTP and through SOCKS",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port }),
    program: `${proxyProgram}
attempt_all([b"127.0.0.1"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/name-to-loopback",
    title: "reach an unlisted loopback port by a listed name, as rebinding would",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port }),
    program: `${proxyProgram}
attempt_all([b"localhost", b"LOCALHOST", b"localhost.", b"LocalHost."], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/unlisted-name",
    title: "reach a server by a name that isn't listed",
    parameters: ({ decoys }) => decoys.unlisted ?? "no second name for the loopback in /etc/hosts",
    program: `${proxyProgram}
attempt_all([P["host"].encode(), P["host"].upper().encode()], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/odd-spellings",
    title: "reach an address spelled in hexadecimal, octal, as one number, short or mapped",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port }),
    program: `${proxyProgram}
attempt_all([b"2130706433", b"0x7f000001", b"0x7f.1", b"0177.0.0.1", b"127.1", b"0", b"127.0.0.1.",
             b"[::ffff:127.0.0.1]", b"::ffff:7f00:1", b"[::ffff:7f00:1]"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/name-behind-a-mark",
    title: "hide an unlisted name in front of a listed one with NUL, @, #, ?, /, % or a line break",
    // Its address is listed, so only the name can stop it, as for any server on the public internet.
    inAnother: ({ decoys, spec }) => ({
      network: {
        allowlist: [
          "*.ambit-listed.test",
          ...(spec.required.includes("network.allow-cidr") ? [addressOf(decoys.unlisted ?? decoys.tcp)] : []),
        ],
      },
    }),
    parameters: ({ decoys }) => decoys.unlisted ?? "no second name for the loopback in /etc/hosts",
    program: `${proxyProgram}
name = P["host"].encode()
listed = b"a.ambit-listed.test"
marks = [b"\\0.", b"%00.", b"#.", b"?.", b"/.", b"\\\\.", b" .", b"\\r\\n.", b"%2f."]
hosts = [name + mark + listed for mark in marks]
hosts += [listed + mark[:-1] + name for mark in marks]
attempt_all(hosts + [name], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/host-header",
    stoppedBy: ["host header check", "allowlist"],
    title: "name a listed host in the Host header and an unlisted one in the request",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port, listed: decoys.listed.port }),
    program: `${proxyProgram}
for proxy in proxies():
    named = b"localhost:%d" % P["listed"]
    attempt("host header", lambda: leaks(by_address_form(proxy, b"127.0.0.1", P["port"], named)))
    attempt("other way round", lambda: leaks(by_address_form(proxy, b"localhost", P["port"], named)))
say("BLOCKED", "no proxy was found") if not proxies() else None`,
  }),
  programAttack({
    id: "network.allow-host/second-request",
    title: "send a second request for an unlisted host on an allowed connection",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port, listed: decoys.listed.port }),
    program: `${proxyProgram}
def second(proxy):
    lines = b"GET http://%s:%d/ HTTP/1.1\\r\\nHost: %s:%d\\r\\nX-Nonce: %s\\r\\n\\r\\n"
    with dial(proxy) as client:
        client.send(lines % (b"localhost", P["listed"], b"localhost", P["listed"], b"first"))
        everything(client)
        client.send(lines % (b"127.0.0.1", P["port"], b"127.0.0.1", P["port"], P["nonce"].encode()))
        return leaks(everything(client))
for proxy in proxies():
    attempt("second request", lambda: second(proxy))
say("BLOCKED", "no proxy was found") if not proxies() else None`,
  }),
  programAttack({
    id: "network.allow-host/datagram",
    stoppedBy: ["network namespace"],
    title: "send data out in a DNS query that bypasses the proxy",
    parameters: ({ decoys }) => ({ port: decoys.udp.port }),
    program: String.raw`
def query():
    name = b"".join(bytes([len(label)]) + label for label in (P["nonce"].encode(), b"localhost"))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(3)
        client.connect(("127.0.0.1", P["port"]))
        client.send(struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + name + b"\0" + struct.pack(">HH", 1, 1))
        return leaks(client.recv(4096))
attempt("query", query)`,
  }),
  programAttack({
    id: "network.allow-host/another-sessions-list",
    title: "reach a host that only another open session lists",
    parameters: async ({ decoys, openAnother, spec }) => {
      const { host, port } = decoys.tcp;
      const lists = spec.required.includes("network.allow-cidr") ? [`${host}:${port}`] : [];
      await openAnother({ network: { allowlist: ["localhost", ...lists] } });
      return { port };
    },
    program: `${proxyProgram}
attempt_all([b"localhost", b"127.0.0.1"], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/changing-address",
    title: "reach an unlisted address by a listed name that changes its address (rebinding)",
    needsNames: true,
    parameters: ({ decoys }) =>
      decoys.rebound === undefined
        ? "no address 127.0.0.2 on the loopback"
        : { port: decoys.rebound.port, names: changingNames },
    program: `${proxyProgram}
for _ in range(3):
    attempt_all([name.encode() for name in P["names"]], P["port"])`,
  }),
  ...tlsAttacks,
] as const;
