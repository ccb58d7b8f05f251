/** The reference for `/health` of a server under attack: the same HTTP stack, with this one route and no other work. */
import { serve } from "@hono/node-server";
import { Hono } from "hono";

const app = new Hono();
app.get("/health", (context) => context.json({ status: "ok", probing: false, replicaId: "floor" }));
serve({ fetch: app.fetch, port: Number(process.argv[2]), hostname: process.argv[3] ?? "127.0.0.1" });
