import type { SeccompArchitecture } from "@ambit/attacks/system-calls";

/** AUDIT_ARCH_* of linux/audit.h: what the kernel writes into `seccomp_data.arch`. */
export const auditArchitecture: Readonly<Record<SeccompArchitecture, number>> = {
  x64: 0xc000003e,
  arm64: 0xc00000b7,
};
