import { readFileSync } from "node:fs";
import { messageOf } from "@ambit/core";
import {
  type NetworkRule,
  type ProxyEndpoint,
  parseNetworkRule,
  type UpstreamProxy,
} from "@ambit/core/plugin";
import { z } from "zod";
import { ConfigurationInvalid } from "./problems.js";

const proxyUrlSchema = z.url({ protocol: /^https?$/ }).refine(isOnlyOrigin, {
  error:
    "must be http:// or https://, a host and a port, without user and path: put the credentials into credentialsFile or AMBIT_EGRESS_PROXY_CREDENTIALS",
});
const destinationSchema = z.string().refine((entry) => "rule" in parseNetworkRule(entry), {
  error: "must be a name, *.suffix, address or range, each with an optional :port",
});
const credentialsFileSchema = z.string().min(1).optional();

/** How connections leave this host. */
export const egressSettingsSchema = z.strictObject({
  proxy: z
    .strictObject({
      url: proxyUrlSchema.meta({
        description:
          "An HTTP proxy that opens tunnels by CONNECT, such as `http://proxy.example:3128`; `https:` encrypts the connection to it. Everything that leaves the runner goes through it: what boundaries allow, models, tools, git, callbacks, webhooks, telemetry, S3. Loopback never does.",
      }),
      credentialsFile: credentialsFileSchema.meta({
        description:
          "A file with `user:password` for the proxy. Default: AMBIT_EGRESS_PROXY_CREDENTIALS, else none are sent.",
      }),
      noProxy: z.array(destinationSchema).default([]).meta({
        description:
          "Destinations that are reached directly, written as in an allowlist: `intranet.example`, `*.corp.example`, `10.0.0.0/8`, each with an optional `:port`.",
      }),
      hosts: z
        .array(
          z.strictObject({
            destinations: z.array(destinationSchema).min(1),
            url: proxyUrlSchema,
            credentialsFile: credentialsFileSchema,
          }),
        )
        .default([])
        .meta({
          description: "Other proxies for some destinations, before `url`: the first entry that fits counts.",
        }),
      resolve: z.enum(["here", "proxy"]).default("here").meta({
        description:
          "Who resolves names on the way through a proxy. `here`: this host does, every address is judged, and the proxy is asked for an address. `proxy`: where only the proxy resolves. Names are judged by the same rules, and which addresses they lead to only by the proxy; the receipt says so (`egress.resolve`).",
      }),
    })
    .optional(),
});
export type EgressSettings = z.output<typeof egressSettingsSchema>;

/**
 * Reads the files with credentials, once.
 *
 * @param credentials of the first proxy, where it has no file.
 * @throws ConfigurationInvalid
 */
export function upstreamProxyOf(
  { proxy }: EgressSettings,
  credentials: string | undefined,
): UpstreamProxy | undefined {
  if (proxy === undefined) {
    if (credentials === undefined) return undefined;
    throw new ConfigurationInvalid("environment", [
      "AMBIT_EGRESS_PROXY_CREDENTIALS has no effect without a proxy: set egress.proxy.url, or unset it",
    ]);
  }
  const routes: UpstreamProxy["routes"] = [
    { destinations: proxy.noProxy.map(ruleOf), proxy: "direct" },
    ...proxy.hosts.map(({ destinations, url, credentialsFile }, index) => ({
      destinations: destinations.map(ruleOf),
      proxy: endpointOf(url, read(credentialsFile, `egress.proxy.hosts[${index}].credentialsFile`)),
    })),
    {
      destinations: "all",
      proxy: endpointOf(
        proxy.url,
        read(proxy.credentialsFile, "egress.proxy.credentialsFile") ?? credentials,
      ),
    },
  ];
  return { routes, resolve: proxy.resolve };
}

/** What logs must not have of it. */
export function secretsOfProxy(upstream: UpstreamProxy | undefined): readonly string[] {
  return (upstream?.routes ?? []).flatMap(({ proxy }) => {
    if (proxy === "direct" || proxy.authorization === undefined) return [];
    const encoded = proxy.authorization.replace(/^Basic /, "");
    const pair = Buffer.from(encoded, "base64").toString();
    return [encoded, pair, pair.slice(pair.indexOf(":") + 1)];
  });
}

function endpointOf(url: string, credentials: string | undefined): ProxyEndpoint {
  const { origin } = new URL(url);
  return credentials === undefined
    ? { url: origin }
    : { url: origin, authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
}

function read(file: string | undefined, field: string): string | undefined {
  if (file === undefined) return undefined;
  let text: string;
  try {
    text = readFileSync(file, "utf8").trimEnd();
  } catch (cause) {
    const reason = `${file} can't be read (${messageOf(cause)}): correct the path, or let the server read it`;
    throw new ConfigurationInvalid(field, [reason], { cause });
  }
  if (proxyCredentials.test(text)) return text;
  throw new ConfigurationInvalid(field, [`${file} must hold one line, user:password`]);
}

/** `user:password` on one line. */
export const proxyCredentials = /^[^:\p{Cc}]+:[^\p{Cc}]+$/u;

function isOnlyOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && url.username === "" && url.password === "" && `${url.origin}/` === url.href;
}

/** @throws TypeError for what the schema refuses */
function ruleOf(entry: string): NetworkRule {
  const parsed = parseNetworkRule(entry);
  if ("rule" in parsed) return parsed.rule;
  throw new TypeError(`${entry}: ${parsed.problem}`);
}
