import type { MachineView, SandboxOrder } from "../platform/service.js";

/** A setting that differs from what was requested. */
interface SettingDifference {
  /** Whether the run's boundary needs it: such a difference must not appear later either. */
  readonly isLimit: boolean;
  readonly text: string;
}

/** Compares what was requested with what the platform reports. Pure. */
export function differences(order: SandboxOrder, view: MachineView): readonly SettingDifference[] {
  return [...limitDifferences(order, view), ...otherDifferences(order, view)];
}

function limitDifferences(
  { network, resources }: SandboxOrder,
  view: MachineView,
): readonly SettingDifference[] {
  const sizes = (["cpu", "memory", "disk"] as const).flatMap((kind) =>
    resources[kind] === undefined ? [] : compare(kind, resources[kind], view[kind]),
  );
  const lists =
    Object.keys(network).length === 0
      ? []
      : [
          compare("networkBlockAll", network.networkBlockAll ?? false, view.networkBlockAll),
          compare(
            "networkAllowList",
            sorted(network.networkAllowList?.split(",")),
            sorted(view.networkAllowList),
          ),
          compare(
            "domainAllowList",
            sorted(network.domainAllowList?.split(",")),
            sorted(view.domainAllowList),
          ),
        ].flat();
  return [...lists, ...sizes, ...compare("public", false, view.isPublic)].map((text) => ({
    isLimit: true,
    text,
  }));
}

function otherDifferences(order: SandboxOrder, view: MachineView): readonly SettingDifference[] {
  const labels = Object.entries(order.labels).flatMap(([name, value]) =>
    compare(`the label ${name}`, value, view.labels[name] ?? ""),
  );
  // Values may be secret: compared, never shown.
  const env = Object.entries(order.env)
    .filter(([name, value]) => view.env[name] !== value)
    .map(([name]) => `the variable ${name} has another value`);
  return [
    ...labels,
    ...env,
    ...compare("autoStopInterval", order.autoStopMinutes, view.autoStopMinutes),
    ...compare("autoDeleteInterval", 0, view.autoDeleteMinutes),
  ].map((text) => ({ isLimit: false, text }));
}

function compare<Value extends string | number | boolean>(
  what: string,
  asked: Value,
  given: Value | undefined,
): readonly string[] {
  return asked === given ? [] : [`${what} is ${given || "empty"}, not ${asked || "empty"}`];
}

const sorted = (entries: readonly string[] = []) => [...entries].sort().join(",");
