import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { imageArchive } from "@ambit/test-machine";
import { postgresIsMissing } from "@ambit/test-postgres";
import { describe, expect, it, onTestFinished } from "vitest";
import { ownUnavailableReason, testCluster } from "../src/index.js";
import { Release, run, whyNoHelm } from "./support/release.js";
import { importRunnerImage } from "./support/runner-image.js";

const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** Builds and pushes, which takes a registry: the cluster gets the images without one. */
const needRegistry = ["npm ci", "sudo npx ambit-sandbox-image", "docker import"];

/** The page's ten commands, each with the lines that belong to it. */
async function commands(): Promise<readonly string[]> {
  const page = await readFile(`${repository}/docs/kubernetes.md`, "utf8");
  const block = /^```sh\n([\s\S]*?)^```/m.exec(page)?.[1] ?? "";
  return block.trim().split(/\n(?! )/);
}

describe("the page about Kubernetes", () => {
  it("leads to a first run in ten commands", async () => {
    const all = await commands();
    expect(all).toHaveLength(10);
    for (const [index, start] of needRegistry.entries()) expect(all[index]).toMatch(new RegExp(`^${start}`));
  });

  it("has commands that run as they stand there", { timeout: 900_000 }, async (context) => {
    if (!process.env.AMBIT_SOAK) context.skip("host: it takes minutes: set AMBIT_SOAK=1");
    const reason = (await ownUnavailableReason()) ?? postgresIsMissing();
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const { own } = await testCluster();
    if (own === undefined) throw new Error("not the tests' own");
    const missing = whyNoHelm(own);
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const release = await Release.prepare();
    onTestFinished(() => release.close());
    await importRunnerImage(own, "ambit.local/ambit:1");
    const archive = await imageArchive();
    await own.importImage({ name: "ambit.local/ambit-sandbox:1", root: { archive }, command: ["/bin/sh"] });
    const stopServing = await release.serveApi();
    onTestFinished(stopServing);
    const script = [
      "trap 'kill $(jobs -p) 2> /dev/null' EXIT",
      ...(await commands()).slice(needRegistry.length),
      // What the page tells to remove it.
      "kubectl -n ambit scale deployment/ambit --replicas 0",
      "helm uninstall ambit -n ambit --wait",
      "kubectl delete namespace ambit",
    ];
    const variables = {
      PATH: `${own.place.programs}:${process.env.PATH}`,
      KUBECONFIG: own.kubeconfig,
      REGISTRY: "ambit.local",
      POSTGRES_URL: release.postgresUrl,
    };
    const given = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    const said = await run("env", ["-C", repository, ...given, "bash", "-euc", script.join("\n")]);
    expect(said.text).toMatch(/This host can guarantee: network.deny \(kubernetes\)/);
    expect(said.text).toMatch(/"ok":true[\s\S]*"output":"hello"|"output":"hello"[\s\S]*"ok":true/);
    expect(said.code, said.text).toBe(0);
  });
});
