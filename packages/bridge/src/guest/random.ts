import { readFileSync } from "node:fs";

/** A random UUID of the kernel's. To load `node:crypto` would delay the guest daemon's start by 4 ms. */
export const randomUuid = (): string => readFileSync("/proc/sys/kernel/random/uuid", "latin1").trim();
