/**
 * The reference for `/health` of a server under attack, and for its refusals: the same HTTP stack, which checks a run's
 * request by the same schema and then refuses it without a plan.
 */
import { runRequestSchema } from "@ambit/core/contract";
import { serve } from "@hono/node-server";
import { Hono } from "hono";

const app = new Hono();
app.get("/health", (context) => context.json({ status: "ok", probing: false, replicaId: "floor" }));
app.post("/run", async (context) => {
  const { success, data } = runRequestSchema.safeParse(await context.req.json());
  return context.json({ ok: false, error: success ? `no plan for ${data.harness}` : "no request" }, 422);
});
serve({ fetch: app.fetch, port: Number(process.argv[2]), hostname: process.argv[3] ?? "127.0.0.1" });
