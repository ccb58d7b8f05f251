import type { Allowance, Stage } from "../attacks/attack.js";
import { outcomeOf } from "../attacks/program-attack.js";
import { proxyProgram } from "../programs/proxy-program.js";
import { runProgram } from "../programs/run-program.js";
import { programAllowance } from "./program-allowance.js";

const listedServer = `${proxyProgram}
def judge(data):
    return b"ambit-listed-server" in data and "the listed server answered"
attempt_all([P["host"].encode()], P["port"], judge)`;

export const networkAllowances = {
  "network.deny": [
    {
      id: "network.deny/own-channel",
      capability: "network.deny",
      title: "the run's own channel works",
      perform: async ({ sandbox }: Stage) => {
        const exposure = await sandbox.expose(() => new Response("the runner answered"));
        try {
          const { url, token } = exposure;
          return outcomeOf(await runProgram(sandbox, askChannel, { url, token }));
        } finally {
          await exposure.close();
        }
      },
    } satisfies Allowance,
  ],
  "network.allow-cidr": [
    programAllowance({
      id: "network.allow-cidr/listed",
      title: "the listed address can be reached",
      parameters: ({ decoys }) => decoys.listed,
      program: listedServer,
    }),
  ],
  "network.allow-host": [
    programAllowance({
      id: "network.allow-host/listed",
      title: "the listed name can be reached",
      parameters: ({ decoys, spec }) =>
        spec.required.includes("network.allow-cidr")
          ? { host: decoys.place.listedName, port: decoys.listed.port }
          : "no name outside loopback to list, and no other host is sent traffic",
      program: listedServer,
    }),
  ],
} as const;

const askChannel = `
import urllib.request
def ask():
    request = urllib.request.Request(P["url"] + "/", headers={"Authorization": "Bearer " + P["token"]})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=10) as response:
        return response.read().decode()
attempt("ask", ask)
`;
