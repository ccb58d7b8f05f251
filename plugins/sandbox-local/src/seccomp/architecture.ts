/** Machines with a table of system call numbers, by Node's names. */
export type SeccompArchitecture = "x64" | "arm64";

/** AUDIT_ARCH_* of linux/audit.h: what the kernel writes into `seccomp_data.arch`. */
export const auditArchitecture: Readonly<Record<SeccompArchitecture, number>> = {
  x64: 0xc000003e,
  arm64: 0xc00000b7,
};

/** Whether `compileSeccompFilter` has a table for this machine (`process.arch`). */
export function isSeccompArchitecture(architecture: string): architecture is SeccompArchitecture {
  return Object.hasOwn(auditArchitecture, architecture);
}
