import { probeSpec, shapeOf } from "@ambit/backend-kit";
import { describe, expect, it } from "vitest";
import { configSchema } from "../src/index.js";
import { orderOf } from "../src/open/order.js";

const owner = { deployment: "d", replica: "host-key", session: "s", expires: 1 };
const orderWith = (settings: object, spec = probeSpec({})) =>
  orderOf(shapeOf(spec), owner, configSchema.parse(settings), { hiding: "exec", seccomp: "{}" }).HostConfig;

describe("the order of a container", () => {
  it("names an AppArmor profile only where the configuration does", () => {
    expect(orderWith({})?.SecurityOpt?.join()).not.toContain("apparmor");
    expect(orderWith({ appArmor: "unconfined" })?.SecurityOpt).toContain("apparmor=unconfined");
  });

  it("has a copy of the image's trust store only for a session with credentials", () => {
    const targets = (mounts: readonly { readonly Target: string }[] = []) =>
      mounts.map(({ Target }) => Target);
    const secrets = [{ name: "KEY", value: "a value of its own", hosts: ["a.test"] }];
    expect(targets(orderWith({})?.Mounts)).toEqual(["/ambit"]);
    expect(targets(orderWith({}, probeSpec({}, { secrets }))?.Mounts)).toEqual(["/ambit", "/etc/ssl/certs"]);
  });
});
