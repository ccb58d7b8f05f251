import type { Boundary, NetworkRule } from "@ambit/core/plugin";
import plugin, { AcpHarness } from "../../src/index.js";
import { demo } from "../../src/profiles/demo.js";
import { gemini } from "../../src/profiles/gemini.js";
import { requestOf } from "./runs.js";

export const limits = plugin.config.parse({}).limits;
export const here = { limits, folder: import.meta.dirname, env: {} };
export const geminiHere = new AcpHarness(gemini, here);
export const demoHere = new AcpHarness(demo, here);

export function boundary(changes: Partial<Boundary>): Boundary {
  return {
    network: { mode: "on", rules: [] },
    filesystem: { mode: "on", readable: [], writable: [], denied: [] },
    resources: {},
    secrets: "visible",
    enforcement: "strict",
    ...changes,
  };
}

export function allowing(...rules: NetworkRule[]): Boundary {
  return boundary({ network: { mode: "allowlist", rules } });
}

export const withKey = requestOf({
  modelConnection: {
    credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: "k" }],
  },
});
export const google: NetworkRule = { kind: "host", name: "googleapis.com", subdomains: true };

export function credential(name: string): object {
  return { binding: { kind: "environment", name }, value: "v" };
}
