/** Machines with a table of system call numbers, by Node's names. */
const architectures = ["x64", "arm64"] as const;
export type SeccompArchitecture = (typeof architectures)[number];

/** Whether there is a table for this machine (`process.arch`). */
export function isSeccompArchitecture(architecture: string): architecture is SeccompArchitecture {
  return architectures.some((one) => one === architecture);
}
