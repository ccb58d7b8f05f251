import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createPlainServer } from "node:net";
import { listeningPort } from "@ambit/attacks/probe";
import { EgressRules } from "@ambit/backend-kit";
import type { ConnectionDecision } from "@ambit/core/plugin";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import { expectThat, node, runIn, type Trial, unlimitedBoundary } from "./trial.js";

/** Tries plain connections to the host, then the proxy; prints the outcome of each. */
const reach = `
const net = require("node:net"), http = require("node:http"), os = require("node:os");
const [port, abstract, farAddress, ...urls] = process.argv.slice(1);
const dial = (where) => new Promise((done) => {
  const socket = net.connect(where);
  socket.once("connect", () => { socket.destroy(); done("reached"); });
  socket.once("error", (error) => done(error.code ?? error.message));
  socket.setTimeout(2000, () => { socket.destroy(); done("silence"); });
});
const ask = (url) => new Promise((done) => {
  const headers = { host: new URL(url).host };
  http.get({ host: "127.0.0.1", port: 3128, path: url, headers, agent: false }, (response) => {
    response.resume(); done(response.statusCode);
  }).once("error", (error) => done(error.code ?? error.message));
});
(async () => {
  const plain = await dial({ host: "127.0.0.1", port: Number(port) });
  const socket = await dial({ path: "\\0" + abstract });
  const far = farAddress === "" ? "not tried" : await dial({ host: farAddress, port: 9 });
  const asked = {};
  for (const url of urls) asked[url] = await ask(url);
  const links = Object.keys(os.networkInterfaces());
  console.log(JSON.stringify({ plain, socket, far, asked, links }));
})();`;

/** Of a block for documentation (RFC 5737). Only for jails without a network: another one would wait for an answer. */
const farAddress = "192.0.2.1";

interface Reached {
  readonly plain: string;
  readonly socket: string;
  readonly far: string;
  readonly asked: Readonly<Record<string, number | string>>;
  readonly links: readonly string[];
}

/** Servers of this host that a jail tries to reach. */
async function withDecoys<Result>(use: (port: number, abstract: string) => Promise<Result>): Promise<Result> {
  const server = createServer((_request, response) => response.end("decoy"));
  const local = createPlainServer((connection) => connection.destroy());
  const name = `ambit-probe-${randomBytes(8).toString("hex")}`;
  server.listen(0, "127.0.0.1");
  local.listen(`\0${name}`);
  try {
    await Promise.all([once(server, "listening"), once(local, "listening")]);
    return await use(listeningPort(server), name);
  } finally {
    server.close();
    server.closeAllConnections();
    local.close();
  }
}

const denied: Trial = {
  shows: ["network.deny"],
  run: (bench) =>
    withDecoys(async (port, abstract) => {
      const decisions: ConnectionDecision[] = [];
      const url = `http://127.0.0.1:${port}/`;
      const [shared, empty] = await Promise.all([
        bench.shared(unlimitedBoundary),
        bench.open(
          { network: { mode: "off", rules: [] } },
          { onDecision: (decision) => decisions.push(decision) },
        ),
      ]);
      const from = async (sandbox: ConfinedSandbox, ...rest: string[]): Promise<Reached> =>
        JSON.parse((await runIn(sandbox, node(reach, String(port), abstract, ...rest))).stdout);
      const control = await from(shared, "");
      expectThat(
        control.plain === "reached" && control.socket === "reached",
        "the control didn't reach a listener of this host either, so nothing is proven",
      );
      const seen = await from(empty, farAddress, url);
      expectThat(
        seen.plain === "ECONNREFUSED",
        `a connect to a listener of this host ended with ${seen.plain}`,
      );
      expectThat(
        seen.socket === "ECONNREFUSED",
        `a connect to an abstract socket of this host ended with ${seen.socket}`,
      );
      expectThat(seen.far === "ENETUNREACH", `a connect to a far address ended with ${seen.far}`);
      expectThat(
        seen.links.every((link) => link === "lo"),
        `there are network interfaces: ${seen.links.join(", ")}`,
      );
      expectThat(seen.asked[url] === 403, `the proxy answered ${seen.asked[url]} instead of 403`);
      expectThat(
        decisions.some(({ allowed }) => !allowed),
        "the refused attempt wasn't recorded",
      );
      return {
        "network.deny":
          "a jail on the host's network reached a TCP and an abstract listener of this host; a jail without reached neither, saw only lo, and its proxy refused and recorded the attempt",
      };
    }),
};

const allowed: Trial = {
  shows: ["network.allow-host", "network.allow-cidr"],
  run: (bench) =>
    withDecoys(async (port, abstract) => {
      const [rules, wideRules] = [new EgressRules(), new EgressRules()];
      const host = { kind: "host", name: "ok.test", subdomains: false } as const;
      const [both, wide, nameOnly] = await Promise.all([
        bench.open({ network: EgressRules.boundary(port) }, rules),
        bench.open({ network: EgressRules.boundary(port, true) }, wideRules),
        bench.open({ network: { mode: "allowlist", rules: [host] } }, { lookup: async () => ["127.0.0.1"] }),
      ]);
      const to = (name: string) => `http://${name}:${port}/`;
      const from = async (sandbox: ConfinedSandbox, names: readonly string[]): Promise<Reached> => {
        const argv = node(reach, String(port), abstract, farAddress, ...names.map(to));
        return JSON.parse((await runIn(sandbox, argv)).stdout);
      };
      const others = ["bad.test", "127.0.0.1", "127.0.0.2"];
      const [seen, widely, narrow] = await Promise.all([
        from(both, [...EgressRules.hosts, ...others]),
        from(wide, EgressRules.hosts),
        from(nameOnly, ["ok.test", ...others]),
      ]);
      const answers = (reached: Reached, names: readonly string[]) =>
        names.map((name) => reached.asked[to(name)]);
      const expectAnswers = (reached: Reached, names: readonly string[], status: number) =>
        expectThat(
          answers(reached, names).every((answer) => answer === status),
          `the proxy answered ${answers(reached, names).join(", ")} for ${names.join(", ")} instead of ${status}`,
        );
      expectThat(
        seen.plain === "ECONNREFUSED" && narrow.plain === "ECONNREFUSED",
        "the proxy can be bypassed",
      );
      expectAnswers(seen, ["127.0.0.1"], 200);
      expectAnswers(seen, ["bad.test", "127.0.0.2"], 403);
      expectAnswers(narrow, ["ok.test", "bad.test", "127.0.0.1"], 403);
      for (const [judged, reached] of [
        [rules, seen],
        [wideRules, widely],
      ] as const) {
        const answered = EgressRules.hosts.filter((name) => reached.asked[to(name)] === 200);
        const complaint = judged.complaint(answered);
        expectThat(complaint === undefined, complaint ?? "");
      }
      return {
        "network.allow-host": `a listed name was answered through the proxy; other names, the same name when it leads to a loopback address that isn't listed, and a direct connect were refused; ${EgressRules.shown}`,
        "network.allow-cidr":
          "a listed address was answered through the proxy; its neighbour and a direct connect were refused",
      };
    }),
};

export const networkTrials: readonly Trial[] = [denied, allowed];
