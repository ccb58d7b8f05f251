import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KubernetesSandbox } from "../../src/index.js";
import { accountWith } from "../support/account.js";
import { Gated, gateOf, sh } from "../support/gated.js";
import { scope, specOf } from "../support/on-cluster.js";

const reason = await ownUnavailableReason();
const patience = { timeout: 60_000, interval: 200 };
const shapes = ["user-namespace", "baseline"] as const;

if (reason !== undefined)
  describe("a gate", () => {
    it("isn't opened", (context) => context.skip(`host: ${reason}`));
  });
else
  describe.each(shapes)("a gate in the shape %s", { timeout: 240_000 }, (shape) => {
    let gated: Gated;
    let backend: KubernetesSandbox;

    beforeAll(async () => {
      gated = await Gated.open(shape);
      backend = gated.backend();
    });
    afterAll(() => gated?.close());

    it("lets a listed name through, whole, and decides as the runner's own proxy does", async () => {
      const seen = async (egress: "gate" | "bridge") => {
        const decisions: object[] = [];
        const onDecision = (decision: object) => void decisions.push(decision);
        const other = gated.backend({ egress });
        const sandbox = await other.open(specOf(gated.boundary, { onDecision }), scope);
        const url = `http://listed.test:${gated.port}`;
        const status = "curl -sS -o /dev/null -w '%{http_code} '";
        const { stdout } = await sh(
          sandbox,
          `curl -sS ${url}/body | sha256sum; ${status} http://other.test/; ${status} http://listed.test:1/;
           ${status} --socks5-hostname "$(echo $HTTP_PROXY | cut -c 8-)" ${url}/; ${status} http://169.254.169.254/`,
        );
        const pods = await gated.namespace.pods();
        await sandbox.close();
        return { decisions, stdout, pods, network: sandbox.evidence["kubernetes.network"] };
      };
      const [withGate, withBridge] = [await seen("gate"), await seen("bridge")];
      const digest = createHash("sha256").update(gated.body).digest("hex");
      expect(withGate.stdout).toBe(`${digest}  -\n403 403 200 403`);
      expect(withGate.decisions).toHaveLength(5);
      expect(withGate.decisions).toEqual(withBridge.decisions);
      expect(withGate.stdout).toBe(withBridge.stdout);
      expect([withGate.pods.length, withBridge.pods.length]).toEqual([2, 1]);
      expect(await gated.namespace.pods()).toEqual([]);
      expect((await gated.listOf("networkpolicies")).length).toBe(1);
    });

    it("puts a credential on, which is nowhere in the sandbox, a manifest or the gate's own", async () => {
      const { namespace, tlsPort } = gated;
      const file = join(String(namespace.settings.dataFolder), "authority.pem");
      await writeFile(file, gated.certificate.cert);
      const trusting = gated.backend({ trustedAuthorities: [file] });
      const value = `ghp_${"aaaabbbb".repeat(5)}`;
      const secrets = [{ name: "TOKEN", value, as: "bearer", hosts: [`listed.test:${tlsPort}`] }] as const;
      const sandbox = await trusting.open(specOf(gated.boundary, { secrets }), scope);
      const placeholder = sandbox.placeholders?.TOKEN ?? "";
      const script = 'curl -sS -H "authorization: Bearer $TOKEN"';
      const { stdout, stderr } = await sh(sandbox, `${script} https://listed.test:${tlsPort}/`, {
        TOKEN: placeholder,
      });
      expect(stderr).toBe("");
      // The server repeats what it got, and gets the value.
      expect(stdout).toBe(`it got Bearer ${placeholder}`);
      expect(gated.authorizations.at(-1)).toBe(`Bearer ${value}`);
      const inside = await sh(sandbox, "env; cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2> /dev/null");
      expect(inside.stdout).not.toContain(value);
      const objects = JSON.stringify([await gated.listOf("pods"), await gated.listOf("networkpolicies")]);
      expect(objects).toContain(gateOf(sandbox));
      expect(objects).not.toContain(value);
      const ofGate = await gated.inGate(
        gateOf(sandbox),
        "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; find / -xdev -type f -newer /proc/1/cmdline 2> /dev/null; id",
      );
      expect(ofGate).toContain("uid=65532");
      expect(ofGate).not.toContain(value);
      await sandbox.close();
    });

    it("is the only thing that the sandbox reaches, and only through the proxy", async () => {
      const sandbox = await backend.open(specOf(gated.boundary), scope);
      const open = await backend.open(specOf({ network: { mode: "on", rules: [] } }), scope);
      const gate = await gated.addressOf(gateOf(sandbox));
      const dial = (host: string, port: number) =>
        `node -e 'const s = require("node:net").connect(${port}, "${host}"); s.setTimeout(3000, () => process.exit(2)).on("connect", () => process.exit(0)).on("error", () => process.exit(1))' && echo reached || echo closed`;
      const targets: readonly (readonly [string, number])[] = [
        [gated.host, gated.port],
        [gated.namespace.own.place.address, 10_250],
        ["192.0.2.1", 80],
      ];
      for (const [host, port] of targets) {
        expect((await sh(sandbox, dial(host, port))).stdout).toBe("closed");
        // The control: nothing but the policy, or the namespace, keeps it from there.
        expect((await sh(open, dial(host, port))).stdout).toBe("reached");
      }
      // In the weaker shape the gate is reached without the relay, and says nothing to who doesn't know the secret.
      expect((await sh(sandbox, dial(gate, 8_443))).stdout).toBe(shape === "baseline" ? "reached" : "closed");
      const asked = await sh(
        sandbox,
        `curl -sS -m 5 --noproxy '*' http://${gate}:8443/ 2>&1; curl -sS -k -m 5 --noproxy '*' https://${gate}:8443/ 2>&1;
         curl -sS -m 5 --noproxy '' -x http://${gate}:8443 http://listed.test:${gated.port}/ 2>&1;
         curl -sS -m 5 --noproxy '' --proxy-insecure -x https://${gate}:8443 http://listed.test:${gated.port}/ 2>&1;
         curl -sS -m 5 --unix-socket /ambit/gate.sock http://listed.test:${gated.port}/ 2>&1`,
      );
      expect(asked.stdout).not.toContain("it got");
      expect(asked.stdout.split("\n")).toHaveLength(5);
      // The control: the same request the right way.
      expect((await sh(sandbox, `curl -sS http://listed.test:${gated.port}/`)).stdout).toContain("it got");
      await Promise.all([sandbox.close(), open.close()]);
    });

    it("serves many connections at once, each with its decision", async () => {
      const decisions: object[] = [];
      const onDecision = (decision: object) => void decisions.push(decision);
      const sandbox = await backend.open(specOf(gated.boundary, { onDecision }), scope);
      const program = `const proxy = new URL(process.env.HTTP_PROXY), at = "http://listed.test:${gated.port}/";
        const ask = () => new Promise((go, fail) => require("node:http").get({ host: proxy.hostname, port: proxy.port, path: at,
          headers: { host: new URL(at).host }, agent: false }, (answer) => answer.resume().on("end", () => go(answer.statusCode))).on("error", fail));
        Promise.all(Array.from({ length: 150 }, ask)).then((all) => console.log(all.filter((one) => one === 200).length));`;
      const { stdout, stderr } = await sh(sandbox, `node -e '${program}'`);
      expect(`${stdout}${stderr}`).toBe("150");
      await expect.poll(() => decisions.length, patience).toBe(150);
      await sandbox.close();
    });

    it("gives a neighbour nothing that dials it", async () => {
      const sandbox = await backend.open(specOf(gated.boundary), scope);
      const neighbour = await backend.open(specOf({ network: { mode: "on", rules: [] } }), scope);
      const gate = await gated.addressOf(gateOf(sandbox));
      const listed = `http://listed.test:${gated.port}/`;
      const { stdout } = await sh(
        neighbour,
        `curl -sS -m 5 -x http://${gate}:8443 ${listed} 2>&1; curl -sS -k -m 5 --proxy-insecure -x https://${gate}:8443 ${listed} 2>&1`,
      );
      expect(stdout.split("\n")).toHaveLength(2);
      expect(stdout).not.toContain("it got");
      // The control: it does reach the server by itself.
      expect((await sh(neighbour, `curl -sS http://${gated.host}:${gated.port}/`)).stdout).toContain(
        "it got",
      );
      await Promise.all([sandbox.close(), neighbour.close()]);
    });

    it("fails its session with the reason when its pod is deleted in mid-run, and nothing is open then", async () => {
      const failures: string[] = [];
      const onFailure = ({ message }: Error) => void failures.push(message);
      const sandbox = await backend.open(specOf(gated.boundary, { onFailure }), scope);
      const ask = `curl -sS -m 5 http://listed.test:${gated.port}/ 2>&1`;
      expect((await sh(sandbox, ask)).stdout).toContain("it got");
      await gated.namespace.request("DELETE", `${gated.pathOf(gateOf(sandbox))}?gracePeriodSeconds=1`);
      await expect.poll(() => failures, patience).toHaveLength(1);
      expect(failures[0]).toMatch(/somebody deletes the pod|was deleted|gate of the sandbox was lost/);
      // At once, although the pod lives for another second.
      const late = async () => (await sh(sandbox, ask)).stdout;
      await expect.poll(late, patience).not.toContain("it got");
      expect(await late()).toMatch(/curl: \(\d+\)/);
      await sandbox.close();
      expect(await gated.namespace.pods()).toEqual([]);
    });

    it("is refused by the right's name where the runner's account may make no policy", async () => {
      const kubeconfig = await accountWith(gated.namespace, []);
      const other = gated.backend({ kubeconfig });
      await expect(other.open(specOf(gated.boundary), scope)).rejects.toThrow(
        /cannot create resource "networkpolicies".*sandboxes.settings.egress/,
      );
      expect(await gated.namespace.pods()).toEqual([]);
      const [finding] = await other.probe(AbortSignal.timeout(60_000), ["network.allow-host"]);
      expect(finding).toMatchObject({
        proven: false,
        reason: expect.stringContaining("networkpolicies: create, delete"),
        fix: expect.stringContaining("sandboxes.settings.egress"),
      });
    });

    it("is proven by a probe, beside a server that isn't listed", async () => {
      const claims = ["network.deny", "network.allow-cidr", "network.allow-host"] as const;
      const findings = await backend.probe(AbortSignal.timeout(200_000), claims);
      expect(findings).toMatchObject(claims.map((capability) => ({ capability, proven: true })));
      const sandbox = await backend.open(specOf(gated.boundary), scope);
      if (shape === "baseline")
        expect(sandbox.evidence["kubernetes.network"]).toMatch(
          /^policy, closed after \d+ ms for \d+ targets$/,
        );
      await sandbox.close();
      expect(await gated.namespace.pods()).toEqual([]);
    });
  });
