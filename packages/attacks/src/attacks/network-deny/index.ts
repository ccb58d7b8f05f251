import { proxyProgram } from "../../programs/proxy-program.js";
import { nearAtOnceAttack, nearAttack } from "../near.js";
import { programAttack } from "../program-attack.js";
import { kernelAttacks } from "./kernel.js";
import { socketAttacks } from "./sockets.js";

/** The run's own channels respond, and lead nowhere else. */
const mediatedAttacks = [
  programAttack({
    id: "network.deny/through-the-proxy",
    stoppedBy: ["allowlist"],
    title: "connect out through every proxy and socket in the sandbox",
    parameters: ({ decoys }) => ({ ...decoys.tcp, name: decoys.place.listedName }),
    program: `${proxyProgram}
attempt_all([P["host"].encode(), P["name"].encode()], P["port"])`,
  }),
] as const;

export const networkDeny = [
  nearAttack("network.deny"),
  nearAtOnceAttack("network.deny"),
  ...socketAttacks,
  ...kernelAttacks,
  ...mediatedAttacks,
] as const;
