/** Machines with a table of system call numbers, by Node's names. */
export const seccompArchitectures = ["x64", "arm64"] as const;
export type SeccompArchitecture = (typeof seccompArchitectures)[number];

/** Whether there is a table for this machine (`process.arch`). */
export function isSeccompArchitecture(architecture: string): architecture is SeccompArchitecture {
  return seccompArchitectures.some((one) => one === architecture);
}
