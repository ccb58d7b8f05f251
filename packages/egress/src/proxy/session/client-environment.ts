import type { NetworkBoundary } from "@ambit/core/plugin";

/** Programs for every sandbox with the proxy. A backend mounts or copies them inside. */
export const nodePreload = new URL("../../../inside/node-proxy.cjs", import.meta.url);

/** Joins standard input and output with a host and port, its arguments, by way of the proxy. For Node.js. */
export const tunnelProgram = new URL("../../../inside/connect.cjs", import.meta.url);

export interface ClientEnvironmentOptions {
  /** The proxy's address as seen inside: `http://127.0.0.1:3128`. */
  readonly proxy: string;
  /** Hosts that programs reach without it. */
  readonly direct: readonly string[];
  /** Path of `nodePreload` inside. */
  readonly preload: string;
  /** The process's own variables, which the options here are added to. */
  readonly given: Readonly<Record<string, string>>;
}

/**
 * Hosts that programs reach without the proxy if inside there is only the sandbox's own loopback. If loopback addresses
 * of the runner are listed, programs use the proxy for `127.…`. Pure.
 */
export function directHosts({ rules }: NetworkBoundary): readonly string[] {
  const listsLoopback = rules.some((rule) => rule.kind === "range" && rule.cidr.startsWith("127."));
  return ["localhost", ...(listsLoopback ? [] : ["127.0.0.1", "127.0.0.0/8"]), "::1"];
}

/** Variables that make programs inside use the proxy. Pure. */
export function clientEnvironment({
  proxy,
  direct,
  preload,
  given,
}: ClientEnvironmentOptions): Readonly<Record<string, string>> {
  const names = { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, ALL_PROXY: proxy, NO_PROXY: direct.join() };
  const lowerCase = Object.entries(names).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    ...names,
    ...Object.fromEntries(lowerCase),
    // Node 22.21 and later supports the variables; older versions need the preload.
    NODE_USE_ENV_PROXY: "1",
    NODE_OPTIONS: [given.NODE_OPTIONS, `--require=${preload}`].filter(Boolean).join(" "),
    // The JVM itself reads options from no variable without printing it to every program's standard error.
    ...Object.fromEntries(
      javaTools.map((name) => [name, [javaOptions(proxy), given[name]].filter(Boolean).join(" ")]),
    ),
  };
}

/** Start scripts of build tools that pass options on to their JVM: Maven, Gradle, sbt. */
const javaTools = ["MAVEN_OPTS", "GRADLE_OPTS", "SBT_OPTS"];

/** Java's settings of a proxy. It connects to loopback without one. */
function javaOptions(proxy: string): string {
  const { hostname, port } = new URL(proxy);
  return ["http", "https"]
    .map((scheme) => `-D${scheme}.proxyHost=${hostname} -D${scheme}.proxyPort=${port}`)
    .join(" ");
}
