import { definePlugin, domains } from "@ambit/core/plugin";
import { z } from "zod";

/** Each kind of offer, whose method does `act`. */
const offers = {
  sandbox: (act) => ({ ...actor, site: "sandbox", touches: () => domains, open: act }),
  executor: (act) => ({ ...actor, site: "runner", kind: "faulty", issues: () => [], execute: act }),
  delivery: (act) => ({ ...actor, site: "runner", publish: act }),
  harness: (act) => ({ ...harness, start: act }),
  toolSource: (act) => ({ ...actor, site: "runner", connection: "http", issues: () => [], connect: act }),
  gateway: (act) => ({ ...actor, site: "runner", issues: () => [], unpriced: () => [], open: act }),
  observer: (act) => ({ name: "faulty", observe: act }),
  store: (act) => ({ name: "faulty", open: act }),
  blobs: (act) => ({ name: "faulty", open: act }),
  toolPolicy: (act) => ({ name: "faulty", issues: () => [], forRun: act }),
  door: (act) => ({ name: "faulty", stdio: act }),
  dialect: (act) => ({ name: "faulty", keys: {}, translate: act }),
};
const actor = { name: "faulty", claims: [], touches: () => [], gaps: () => [], probe: async () => [] };
const harness = {
  ...actor,
  site: "sandbox",
  id: "faulty-agent",
  aliases: [],
  supportsPermissionRequests: true,
  maxToolCallMs: 60_000,
  issues: () => [],
  requiredPaths: () => [],
  visibleCredentials: () => [],
  start: async () => ({}),
};
const model = {
  protocol: "openai",
  endpoint: "http://127.0.0.1:9/v1",
  basePath: "/v1",
  credentials: { KEY: "value" },
  headers: {},
  model: "m",
  auxiliaryModels: [],
};

/** What it returns is of another kind than what it promised, or it throws what a slip of the pen throws. */
const acts = {
  lying: () => 7,
  crashing: () => {
    throw new TypeError("undefined is not a function");
  },
};

export default definePlugin({
  name: "faulty",
  api: 1,
  config: z.strictObject({
    kind: z.enum(Object.keys(offers)),
    fault: z.enum(["malformed", "overclaiming", ...Object.keys(acts)]),
  }),
  register: ({ add }, { kind, fault }) => {
    if (fault === "malformed") {
      // Every method is a text.
      for (const [each, offer] of Object.entries(offers)) add(each, offer("no method"));
      return;
    }
    const asynchronous = !["observer", "dialect", "toolPolicy"].includes(kind);
    const act = acts[fault] ?? acts.lying;
    const offer = offers[kind](asynchronous ? async () => act() : act);
    // The agent whose model a gateway carries.
    if (kind === "gateway") add("harness", { ...harness, model: () => model });
    // A claim without a finding.
    const claiming = { claims: ["secrets.hidden"], touches: () => domains };
    add(kind, fault === "overclaiming" ? { ...offer, ...claiming } : offer);
  },
});
