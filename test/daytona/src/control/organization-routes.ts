import type { ListSecretsResponse, PaginatedSnapshots, Secret } from "@daytona/api-client";
import { z } from "zod";
import { readJson, sendEmpty, sendJson } from "../http/json.js";
import type { Routes } from "../http/routes.js";
import type { ResolvedOptions } from "../options.js";
import { parseBody } from "./sandboxes/create-request.js";
import { organizationId } from "./sandboxes/sandbox.js";
import type { Sandboxes } from "./sandboxes/sandboxes.js";
import { snapshotDto, snapshotNamed, snapshotsOf } from "./sandboxes/snapshots.js";
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
  options: ResolvedOptions,
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

  const snapshots = snapshotsOf(options);
  routes
    .on("GET", "/api/snapshots", ({ response }) => {
      const items = [...snapshots].map(([name, snapshot]) => snapshotDto(name, snapshot));
      const page = { total: items.length, page: 1, totalPages: 1 } satisfies Omit<
        PaginatedSnapshots,
        "items"
      >;
      sendJson(response, 200, { items, ...page });
    })
    .on("GET", "/api/snapshots/:snapshot", ({ response, path }) => {
      const name = snapshotNamed(path("snapshot"), options);
      const snapshot = snapshots.get(name);
      if (snapshot) sendJson(response, 200, { ...snapshotDto(name, snapshot), organizationId });
    });
}
