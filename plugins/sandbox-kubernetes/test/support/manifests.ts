import { probeSpec, shapeOf } from "@ambit/backend-kit";
import type { SandboxSpec } from "@ambit/core/plugin";
import type { V1Pod } from "@kubernetes/client-node";
import type { z } from "zod";
import type { PodShape } from "../../src/enter.js";
import { configSchema } from "../../src/index.js";
import { manifestOf } from "../../src/pod/manifest.js";

export const owner = { deployment: "d", replica: "host-key", session: "s", expires: 1 };

export function podOf(
  settings: Partial<z.input<typeof configSchema>> = {},
  spec: SandboxSpec = probeSpec({ network: { mode: "off", rules: [] } }),
  podShape: PodShape = "user-namespace",
): V1Pod {
  const config = configSchema.parse({ image: "image:1", ...settings });
  const lease = { name: "ambit-d-host-key", uid: "lease-uid" };
  return manifestOf({ shape: shapeOf(spec), owner, podShape, lease, config });
}
