import { proxyProgram } from "../../programs/proxy-program.js";
import { programAttack } from "../program-attack.js";

/** The run's own channels respond, and lead nowhere else. */
export const mediatedAttacks = [
  programAttack({
    id: "network.deny/through-the-proxy",
    stoppedBy: ["allowlist"],
    title: "connect out through every proxy and socket in the sandbox",
    parameters: ({ decoys }) => ({ port: decoys.tcp.port }),
    program: `${proxyProgram}
attempt_all([b"127.0.0.1", b"localhost"], P["port"])`,
  }),
] as const;
