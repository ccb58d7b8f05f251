import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import { listeningPort } from "@ambit/attacks/probe";
import type { NetworkRule } from "@ambit/core/plugin";
import { makeAuthority } from "@ambit/egress/credentials";
import { expectThat, node, runIn, type Trial } from "./trial.js";

const host = "credentials.ambit-probe.test";
const name = "AMBIT_PROBE_KEY";

/** Sends the variable's value to its host, and prints the response and every readable environment. */
const send = `
const http = require("node:http"), tls = require("node:tls"), fs = require("node:fs");
const [authority, variable] = process.argv.slice(1);
const seen = fs.readdirSync("/proc").filter((name) => /^[0-9]/.test(name)).map((pid) => {
  try { return fs.readFileSync("/proc/" + pid + "/environ", "latin1"); } catch { return ""; }
});
const tunnel = http.request({ host: "127.0.0.1", port: 3128, method: "CONNECT", path: authority, agent: false });
tunnel.on("connect", (_response, socket) => {
  const secure = tls.connect({ socket, servername: authority.split(":")[0] }, () => {
    secure.write("GET / HTTP/1.1\\r\\nHost: " + authority + "\\r\\nAuthorization: Bearer " + process.env[variable] +
      "\\r\\nConnection: close\\r\\n\\r\\n");
  });
  let answer = "";
  secure.on("data", (data) => { answer += data.toString("latin1"); });
  secure.on("close", () => console.log(JSON.stringify({ answer, seen })));
  secure.on("error", (error) => { answer += error.message; });
});
tunnel.on("error", (error) => console.log(JSON.stringify({ answer: error.message, seen })));
tunnel.end();`;

interface Sent {
  readonly answer: string;
  readonly seen: readonly string[];
}

/** A credential arrives at its host, and isn't found inside; the same value as a plain variable is found. */
export const secretTrial: Trial = {
  shows: ["secrets.hidden"],
  run: async (bench) => {
    const value = randomBytes(24).toString("hex");
    const authority = await makeAuthority();
    const received: string[] = [];
    const SNICallback: NonNullable<Parameters<typeof createServer>[0]["SNICallback"]> = (
      serverName,
      done,
    ) => {
      authority.contextFor(serverName).then((context) => done(null, context), done);
    };
    const server = createServer({ SNICallback }, (request, response) => {
      received.push(request.headers.authorization ?? "");
      response.end(`you sent ${request.headers.authorization}`);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const port = listeningPort(server);
      const rules: readonly NetworkRule[] = [
        { kind: "host", name: host, subdomains: false, port },
        { kind: "range", cidr: "127.0.0.1/32", family: 4, port },
      ];
      const sandbox = await bench.open(
        { network: { mode: "allowlist", rules }, secrets: "hidden" },
        {
          secrets: [{ name, value, hosts: [`${host}:${port}`], as: "bearer" }],
          lookup: async () => ["127.0.0.1"],
          trusted: [authority.certificate],
        },
      );
      const placeholder = sandbox.placeholders[name] ?? "";
      const sent = async (text: string): Promise<Sent> => {
        const env = { PATH: "/usr/local/bin:/usr/bin:/bin", [name]: text };
        return JSON.parse((await runIn(sandbox, node(send, `${host}:${port}`, name), { env })).stdout);
      };
      const control = await sent(value);
      expectThat(
        control.seen.some((text) => text.includes(value)),
        "the control didn't find the value in a variable either, so nothing is proven",
      );
      const seen = await sent(placeholder);
      expectThat(
        received.at(-1) === `Bearer ${value}`,
        `the value didn't arrive at its host: ${seen.answer}`,
      );
      const all = [seen.answer, ...seen.seen].join("\n");
      expectThat(all.includes(placeholder), "the placeholder wasn't found inside, so nothing is proven");
      expectThat(!all.includes(value), "the value was found inside");
    } finally {
      server.close();
      server.closeAllConnections();
    }
    return {
      "secrets.hidden":
        "a value that was found inside as a plain variable arrived at its host as a hidden one, and inside there was only its placeholder, also in the answer of a host that repeated it",
    };
  },
};
