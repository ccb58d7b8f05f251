import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { NetworkRule } from "@ambit/core/plugin";
import { boundConnections } from "../../decoys/network-decoys.js";
import type { Attempts } from "../../inside/attempts.js";
import { tryInside } from "../../inside/look.js";
import { listeningPort } from "../../probe/free-ports.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { StandardTrial } from "../bench.js";

const host = "credentials.ambit-probe.test";
const name = "AMBIT_PROBE_KEY";

/** A credential arrives at its host, and isn't found inside; the same value, as a plain variable, is found. */
export const secretTrial: StandardTrial = {
  shows: ["secrets.hidden"],
  async run(bench) {
    const value = randomBytes(24).toString("hex");
    const authority = await bench.probe.makeAuthority?.();
    expectThat(
      authority !== undefined,
      "the backend's probe makes no server that a credential could arrive at",
    );
    const received: (string | undefined)[] = [];
    const server = createServer(
      {
        SNICallback: (asked, done) =>
          void authority.contextFor(asked).then((context) => done(null, context), done),
      },
      (request, response) => {
        received.push(request.headers.authorization);
        response.end(`you sent ${request.headers.authorization}`);
      },
    );
    boundConnections(server);
    await once(server.listen(0, "127.0.0.1"), "listening");
    try {
      const port = listeningPort(server);
      const rules: readonly NetworkRule[] = [
        { kind: "host", name: host, subdomains: false, port },
        { kind: "range", cidr: "127.0.0.1/32", family: 4, port },
      ];
      const secret = { name, value, hosts: [`${host}:${port}`], as: "bearer" } as const;
      const sandbox = await bench.open(
        { network: { mode: "allowlist", rules }, secrets: "hidden" },
        { secrets: [secret], lookup: async () => ["127.0.0.1"], trusted: [authority.certificate] },
      );
      const attempts: Attempts = {
        response: { try: "send", host, port, variable: name },
        environment: { try: "environments" },
      };
      const placeholder = sandbox.placeholders?.[name] ?? "";
      const plain = await tryInside(sandbox, bench, attempts, { env: { [name]: value } });
      expectConclusive(
        plain.environment?.includes(value) === true,
        "a plain variable isn't found inside either",
      );
      const hidden = await tryInside(sandbox, bench, attempts, { env: { [name]: placeholder } });
      expectConclusive(
        received.at(-1) === `Bearer ${value}`,
        `the value didn't arrive at its host: ${hidden.response}`,
      );
      const all = `${hidden.response} ${hidden.environment}`;
      expectThat(placeholder !== "" && all.includes(placeholder), "the placeholder wasn't found inside");
      expectThat(!all.includes(value), "the value was found inside");
    } finally {
      server.close();
      server.closeAllConnections();
    }
    return {
      "secrets.hidden":
        "a value that was found inside as a plain variable arrived at its host as a hidden one; inside there was only its placeholder, also in the answer of a host that repeated it",
    };
  },
};
