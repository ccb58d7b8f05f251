import type { SandboxOverrides } from "@ambit/attacks/standard-probe";
import type { KubernetesConfig } from "../config.js";

/** What a probe or a test has instead of the configuration. */
export interface PodOverrides extends SandboxOverrides {
  /** Default: the configuration's. */
  readonly egress?: KubernetesConfig["egress"] | undefined;
}
