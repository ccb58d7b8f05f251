import { kernelAttacks } from "./kernel.js";
import { mediatedAttacks } from "./mediated.js";
import { socketAttacks } from "./sockets.js";

export const networkDeny = [...socketAttacks, ...kernelAttacks, ...mediatedAttacks] as const;
