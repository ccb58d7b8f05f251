import { nearAtOnceAttack, nearAttack } from "../near.js";
import { kernelAttacks } from "./kernel.js";
import { mediatedAttacks } from "./mediated.js";
import { socketAttacks } from "./sockets.js";

export const networkDeny = [
  nearAttack("network.deny"),
  nearAtOnceAttack("network.deny"),
  ...socketAttacks,
  ...kernelAttacks,
  ...mediatedAttacks,
] as const;
