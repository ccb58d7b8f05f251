import { kernelAttacks } from "./kernel.js";
import { pathAttacks } from "./paths.js";
import { sessionAttacks } from "./sessions.js";

export const filesystemHostHidden = [...pathAttacks, ...kernelAttacks, ...sessionAttacks] as const;
