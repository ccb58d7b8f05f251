import { messageOf } from "@ambit/core";
import { codeOf } from "@ambit/core/plugin";
import { ConfigurationInvalid } from "../../configuration/problems.js";

const fixes: Readonly<Record<string, (setting: string) => string>> = {
  EADDRINUSE: (setting) =>
    `another program listens there: end it, or set another ${setting}.port${option(setting, "port")}`,
  EACCES: (setting) => `this user may not: set ${setting}.port ${option(setting, "port")} to 1024 or more`,
  EADDRNOTAVAIL: (setting) =>
    `this machine has no such address: set another ${setting}.host${option(setting, "host")}`,
  ENOTFOUND: (setting) => `no such name is known here: set another ${setting}.host${option(setting, "host")}`,
};

/** What sets the same of the server itself, for those without a configuration. */
function option(setting: string, name: string): string {
  return setting === "server" ? ` (--${name})` : "";
}

/** @param setting of the listener: `server`. */
export function cantListen(
  setting: string,
  host: string,
  port: number,
  cause: unknown,
): ConfigurationInvalid {
  const fix = fixes[codeOf(cause) ?? ""]?.(setting);
  const problem = `can't listen on ${host}:${port}: ${messageOf(cause)}`;
  return new ConfigurationInvalid(setting, [fix === undefined ? problem : `${problem}: ${fix}`], { cause });
}

/** The URL of a listener: `http://127.0.0.1:8765`. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
