import { z } from "zod";

/** Where ports inside sandboxes are reached: a listener of its own, never the API's, with an origin for each port. */
export const previewSettingsSchema = z
  .strictObject({
    host: z.string().min(1).default("127.0.0.1").meta({
      description: "Where the listener of previews listens. Any address but a loopback one needs `url`.",
    }),
    port: z.int().min(0).max(65_535).optional().meta({
      description:
        "The port of previews: requests may then have `ports`. 0 selects a free one. Default: none, and such a request is refused.",
    }),
    url: z
      .string()
      .regex(/^https?:\/\/\*(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+(?::[0-9]{1,5})?$/, {
        error: 'must be a wildcard origin, such as "https://*.preview.example.com"',
      })
      .optional()
      .meta({
        description:
          "The wildcard origin under which callers reach that listener, such as `https://*.preview.example.com`: each port has a name of its own below it. Use a domain that serves nothing else. Default: `http://*.localhost:<port>`.",
      }),
    ttlMs: z.int().min(1_000).max(86_400_000).default(3_600_000).meta({
      description:
        "Milliseconds that a preview's URL and its connections last; the next run makes a new URL.",
    }),
    frameAncestors: z
      .array(
        z.string().regex(/^https?:\/\/[a-z0-9.-]+(?::[0-9]{1,5})?$/, {
          error: 'must be an origin, such as "https://app.example.com"',
        }),
      )
      .max(32)
      .default([])
      .meta({
        description:
          "Origins whose pages may show a preview in a frame, such as `https://app.example.com`. Default: none, a preview's own pages only.",
      }),
    maxConnections: z.int().min(1).max(128).default(64).meta({
      description: "Requests and WebSockets of one preview at a time; beyond that, 503.",
    }),
    idleMs: z.int().min(1_000).max(86_400_000).default(120_000).meta({
      description: "Milliseconds without a byte in either direction, after which a connection ends.",
    }),
  })
  .refine(({ url, port }) => url === undefined || port !== undefined, {
    path: ["port"],
    error: "is needed beside `url`: without it there are no previews",
  });
export type PreviewSettings = z.output<typeof previewSettingsSchema>;
