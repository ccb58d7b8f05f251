import type { ListSecretsResponse, PaginatedSnapshots, Secret } from "@daytona/api-client";
import { z } from "zod";
import { readJson, sendEmpty, sendJson } from "../http/json.js";
import type { Routes } from "../http/routes.js";
import { parseBody } from "./sandboxes/create-request.js";
import { organizationId } from "./sandboxes/sandbox.js";
import type { Sandboxes } from "./sandboxes/sandboxes.js";
import { type Snapshots, snapshotDto } from "./sandboxes/snapshots.js";
import type { Secrets, StoredSecret } from "./secrets.js";

const hosts = z.array(z.string());
const createSecret = z.object({
  name: z.string(),
  value: z.string().min(1),
  description: z.string().optional(),
  hosts: hosts.default([]),
});
const updateSecret = z.object({
  value: z.string().min(1).optional(),
  description: z.string().optional(),
  hosts: hosts.optional(),
});
const pageQuery = z.object({
  page: z.coerce.number().int().min(1).default(1),
  limit: z.coerce.number().int().min(1).max(200).default(100),
});

type Time = "createdAt" | "updatedAt";

/** Without its value. Times are strings on the wire. */
function secretDto(secret: StoredSecret): Omit<Secret, Time> & Record<Time, string> {
  const { id, name, description, placeholder, createdAt, updatedAt } = secret;
  const described = description === undefined ? {} : { description };
  return { id, name, ...described, placeholder, hosts: [...secret.hosts], createdAt, updatedAt };
}

/** Resources of the organisation: secrets, snapshots. */
export function addOrganizationRoutes(
  routes: Routes,
  secrets: Secrets,
  sandboxes: Sandboxes,
  snapshots: Snapshots,
): void {
  const list = (name: string | null) => {
    const items = secrets.all().filter((secret) => name === null || secret.name.includes(name));
    return { items: items.map(secretDto), total: items.length, nextCursor: null } satisfies Omit<
      ListSecretsResponse,
      "items"
    > & { items: unknown };
  };

  routes
    .on("GET", "/api/secret", ({ response }) => sendJson(response, 200, list(null).items))
    .on("GET", "/api/secret/paginated", ({ response, query }) =>
      sendJson(response, 200, list(query.get("name"))),
    )
    .on("POST", "/api/secret", async ({ request, response }) => {
      const wanted = parseBody(createSecret, await readJson(request));
      const secret = secrets.create(wanted.name, wanted.value, wanted.hosts, wanted.description);
      sendJson(response, 201, secretDto(secret));
    })
    .on("GET", "/api/secret/:secret", ({ response, path }) =>
      sendJson(response, 200, secretDto(secrets.get(path("secret")))),
    )
    .on("PATCH", "/api/secret/:secret", async ({ request, response, path }) => {
      const secret = secrets.update(path("secret"), parseBody(updateSecret, await readJson(request)));
      await sandboxes.refreshSecrets();
      sendJson(response, 200, secretDto(secret));
    })
    .on("DELETE", "/api/secret/:secret", async ({ response, path }) => {
      secrets.delete(path("secret"));
      await sandboxes.refreshSecrets();
      sendEmpty(response, 204);
    });

  routes
    .on("GET", "/api/snapshots", ({ response, query }) => {
      const { page, limit } = parseBody(pageQuery, Object.fromEntries(query));
      const all = snapshots.all();
      const items = all.slice((page - 1) * limit, page * limit).map(snapshotDto);
      const pages = { total: all.length, page, totalPages: Math.ceil(all.length / limit) } satisfies Omit<
        PaginatedSnapshots,
        "items"
      >;
      sendJson(response, 200, { items, ...pages });
    })
    .on("GET", "/api/snapshots/:snapshot", ({ response, path }) =>
      sendJson(response, 200, { ...snapshotDto(snapshots.get(path("snapshot"))), organizationId }),
    )
    .on("DELETE", "/api/snapshots/:snapshot", async ({ response, path }) => {
      await sandboxes.deleteSnapshot(snapshots.get(path("snapshot")));
      sendEmpty(response, 200);
    });
}
