import { proxyProgram } from "../../programs/proxy-program.js";
import { programAttack } from "../program-attack.js";

/** The run's own channels respond, and lead nowhere else. */
export const mediatedAttacks = [
  programAttack({
    id: "network.deny/through-the-proxy",
    stoppedBy: ["allowlist"],
    title: "connect out through every proxy and socket in the sandbox",
    parameters: ({ decoys }) => ({ ...decoys.tcp, name: decoys.place.listedName }),
    program: `${proxyProgram}
attempt_all([P["host"].encode(), P["name"].encode()], P["port"])`,
  }),
] as const;
