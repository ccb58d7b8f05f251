import type { Verification } from "@ambit/attacks";
import type { LocalConfig } from "./config.js";

export function verificationWith(config: LocalConfig): Verification {
  const runnerModule = new URL("../dist/runner-module.js", import.meta.url);
  runnerModule.searchParams.set("config", JSON.stringify(config));
  return { runnerModule };
}
