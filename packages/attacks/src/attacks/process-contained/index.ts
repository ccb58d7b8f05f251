import { hostProcessAttacks } from "./host-processes.js";
import { lifetimeAttacks } from "./lifetime.js";
import { sessionAttacks } from "./sessions.js";

export const processContained = [...hostProcessAttacks, ...lifetimeAttacks, ...sessionAttacks] as const;
