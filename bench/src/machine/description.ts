import { cpus, release, totalmem } from "node:os";

/** A description of the machine that reveals nothing about its owner. */
export function machineDescription(): string {
  const memory = Math.round(totalmem() / 2 ** 30);
  const cores = cpus().length;
  const kernel = release().split(".").slice(0, 2).join(".");
  return `${cores} cores, ${memory} GiB of memory, ${process.platform} ${kernel} ${process.arch}, Node ${process.version}`;
}
