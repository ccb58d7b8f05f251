import type { RunRequest } from "@ambit/core/plugin";

/** The cloud region that the request names. Pure. */
export function regionOf({ modelConnection: connection }: RunRequest): string | undefined {
  const { AWS_REGION, CLOUD_ML_REGION } = connection?.environment ?? {};
  return connection?.endpoint?.region ?? AWS_REGION ?? CLOUD_ML_REGION;
}
