/**
 * Writes docs/backends.md: which sandbox proves what, on which host and by which mechanism, as judged by the
 * conformance kit. The column of the real Daytona is filled if `DAYTONA_API_KEY` is set; otherwise it says that it
 * wasn't tested. Needs root, for the loopback Daytona. Docker's columns need dockerd and runsc; without them they name
 * what is missing.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { capabilities, promises } from "../../core/dist/index.js";
import { makeAuthority } from "../../packages/egress/dist/credentials/index.js";
import { DaytonaSandbox, configSchema as daytonaConfig } from "../../plugins/sandbox-daytona/dist/index.js";
import { DockerSandbox, configSchema as dockerConfig } from "../../plugins/sandbox-docker/dist/index.js";
import { startLoopbackDaytona } from "../../test/daytona/dist/index.js";
import { startDockerEngine } from "../../test/docker-engine/dist/index.js";
import { ChangingNames, CredentialHost, operatorControl, runAttacks } from "../../test/kit/dist/index.js";
import { root } from "../setup.mjs";
import { reportOf } from "./report.mjs";

/** @param {string} file */
const exemptIn = (file) => JSON.parse(readFileSync(join(root, "plugins", file), "utf8"));
const exempt = exemptIn("sandbox-daytona/test/support/exempt.json");

const ports = "the kit lists decoys by their ports, which the platform can't bind";
const sizes = "the kit's limits are smaller than the platform's whole cores and GiB";
/** @type {Readonly<Record<string, string>>} What the kit can't ask Daytona for: there `gaps` names a gap. */
const unaskable = {
  "network.allow-cidr": ports,
  "network.allow-host": ports,
  "resources.memory": sizes,
  "resources.cpu": sizes,
  "resources.disk": sizes,
};

async function onLoopbackDaytona() {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-backends-"));
  const daytona = await startLoopbackDaytona({
    image: { user: "root" },
    startDelayMs: 0,
    sessionGraceMs: 200,
    world: [
      { name: "address.example.test", address: "10.99.0.10" },
      { name: "name.example.test" },
      { name: "other.example.test" },
    ],
  });
  try {
    const config = daytonaConfig.parse({
      apiKey: daytona.apiKey,
      apiUrl: daytona.apiUrl,
      image: "node:22",
      dataFolder,
      canary: {
        address: "10.99.0.10:80",
        name: "name.example.test:80",
        forbidden: ["other.example.test:80"],
        attemptMs: 200,
      },
    });
    const backend = new DaytonaSandbox(config);
    return await runAttacks(backend, {
      control: operatorControl(backend),
      exempt,
      // Sandboxes reach neither this host nor each other.
      beyond: [{ host: "10.99.0.10", port: 80 }],
      probeMs: 180_000,
      onCapability: ({ capability, assurance }) =>
        console.error(`daytona, loopback: ${assurance} ${capability}`),
    });
  } finally {
    await daytona.close();
    await rm(dataFolder, { recursive: true, force: true });
  }
}

async function onDaytona() {
  if (!process.env.DAYTONA_API_KEY) return undefined;
  const config = daytonaConfig.parse({});
  const backend = new DaytonaSandbox(config);
  const beyond = [config.canary.address];
  return await runAttacks(backend, { control: operatorControl(backend), exempt, beyond, probeMs: 300_000 });
}

/** @typedef {import("../../test/kit/dist/index.js").VerifyReport} VerifyReport */

/**
 * In containers of a separate engine.
 * @returns {Promise<{ runc?: VerifyReport, runsc?: VerifyReport }>} without a runtime that doesn't run here.
 */
async function onDocker() {
  /** @type {Awaited<ReturnType<typeof startDockerEngine>>} */
  let engine;
  try {
    engine = await startDockerEngine();
  } catch (error) {
    console.error(`docker: ${error instanceof Error ? error.message : error}`);
    return {};
  }
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-backends-"));
  const { credentialHost, authorityFile } = await CredentialHost.openIn(dataFolder, makeAuthority);
  /** @param {"runc" | "runsc"} runtime */
  const attacked = async (runtime) => {
    const failure = engine.failures[runtime];
    if (failure != null) {
      console.error(`docker, ${runtime}: ${failure}`);
      return undefined;
    }
    const names = new ChangingNames();
    const config = dockerConfig.parse({
      runtime,
      dataFolder,
      engine: `unix://${engine.socket}`,
      image: engine.image,
      network: "none",
      deployment: `backends-${runtime}`,
      trustedAuthorities: [authorityFile],
    });
    const backend = new DockerSandbox(config, names.lookup);
    return await runAttacks(backend, {
      control: operatorControl(backend),
      names,
      credentialHost,
      probeMs: 180_000,
      onCapability: ({ capability, assurance }) =>
        console.error(`docker, ${runtime}: ${assurance} ${capability}`),
    });
  };
  try {
    const [runc, runsc] = [await attacked("runc"), await attacked("runsc")];
    return { ...(runc && { runc }), ...(runsc && { runsc }) };
  } finally {
    await credentialHost.close();
    await engine.close();
    await rm(dataFolder, { recursive: true, force: true });
  }
}

const docker = await onDocker();
/** @type {readonly { title: string, report: VerifyReport | undefined }[]} */
const hosts = [
  { title: "local, as root", report: reportOf(["server/dist/cli/main.js", "verify", "--json"]) },
  { title: "local, as an ordinary user", report: reportOf(["scripts/verify-as-user.mjs"]) },
  { title: "Docker, runc", report: docker.runc },
  { title: "Docker, gVisor", report: docker.runsc },
  { title: "Daytona, *loopback*", report: await onLoopbackDaytona() },
  { title: "Daytona, the platform", report: await onDaytona() },
];

/** @param {string} text */
const cell = (text) =>
  text
    .replaceAll("|", "\\|")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ \(E[A-Z]+: .*$/g, "");

/** @param {(typeof hosts)[number]} host @param {string} capability */
function judged({ report }, capability) {
  const found = report?.capabilities.find((one) => one.capability === capability);
  if (report === undefined || found === undefined) return { assurance: "not tested", reason: "" };
  const made = found.attacks.filter(({ verdict }) => verdict === "proven").length;
  const isTaken = found.assurance === "proven" && made > 0;
  const assurance = assuranceOf(report, found);
  // For what the kit can't request, the backend's probe decides.
  const isAsked = isTaken || !assurance.startsWith("by its own probe");
  return {
    assurance: isTaken ? `proven, ${made} of ${found.attacks.length} attacks` : assurance,
    reason: isAsked ? found.reason : (found.probed ?? found.reason),
  };
}

/**
 * @param {VerifyReport} report
 * @param {VerifyReport["capabilities"][number]} found
 */
function assuranceOf({ backend }, { capability, assurance }) {
  const why = backend === "daytona" ? unaskable[capability] : undefined;
  return assurance === "useless" && why !== undefined ? `by its own probe, since ${why}` : assurance;
}

const sections = capabilities.map((capability) => {
  const rows = hosts.map((host) => {
    const { assurance, reason } = judged(host, capability);
    return `| ${host.title} | ${cell(assurance)} | ${cell(reason)} |`;
  });
  const head = ["| where | | by |", "|---|---|---|"];
  return [`## \`${capability}\``, "", promises[capability], "", ...head, ...rows].join("\n");
});
const table = [
  `| capability | ${hosts.map(({ title }) => title).join(" | ")} |`,
  `|---|${hosts.map(() => "---|").join("")}`,
  ...capabilities.map((capability) => {
    const cells = hosts.map((host) => cell(judged(host, capability).assurance.replace(/,.*/, "")));
    return `| \`${capability}\` | ${cells.join(" | ")} |`;
  }),
].join("\n");

const page = `# What each sandbox proves

Generated by \`node scripts/docs/backends.mjs\` from the conformance kit. 
- **proven**: attacks that work without the guard failed behind it. Attacks that aren't counted need privileges that no
  control has, or prove nothing there.
- **by its own probe**: the kit's decoys can't be listed there, so the result is that of the backend's own probe, which also
  has a control.
- **refused**: not claimed or not proven there. A run that needs it is refused.
- **Daytona, *loopback***: this repository's own Daytona, with real containers on a real network. It proves the plugin, not
  the platform.

 Every attack: [enforcement](enforcement.md). Another backend: [write one](write-a-backend.md).

${table}

${sections.join("\n\n")}
`;
writeFileSync(join(root, "docs/backends.md"), page);
