import { createHash, type KeyObject } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { RequestInvalid, Unauthorized } from "@ambit/core";
import { validBody } from "@ambit/core/plugin";
import { z } from "zod";
import { callerOf, presentsToken, setCaller, setPerson, type Tenants } from "../../tenants/caller.js";
import type { Bodies } from "../body.js";
import type { OperatorAccess } from "../caller/operator-access.js";
import { HttpRefusal } from "../response/refusal.js";
import { json } from "../response/send.js";
import { ConsolePage } from "./page.js";
import {
  type ConsoleSession,
  isSame,
  linkMs,
  lowerRole,
  mayCall,
  proofOf,
  type Role,
  readSession,
  roleSchema,
  SignInLinks,
  sealSession,
} from "./session.js";

/** Milliseconds of a session. */
const sessionMs = 12 * 60 * 60_000;

/** Bytes of a body, which holds one token or code. */
const bodyLimit = 16 * 1024;

/** The header with the session's proof, which no other origin's page has, and no form can send. */
const proofHeader = "x-ambit-console";

const root = "/console";

const signInSchema = z.union([
  z.strictObject({ code: z.string().min(1).max(256) }),
  z.strictObject({ token: z.string().min(1).max(4_096) }),
]);
const linkSchema = z.strictObject({
  role: roleSchema.default("operator"),
  user: z.string().trim().min(1).max(100).optional(),
});

interface ConsoleOptions {
  readonly operator: OperatorAccess;
  readonly tenants: Tenants;
  readonly bodies: Bodies;
  readonly key: () => Promise<KeyObject>;
  /** Whether terminals are opened in sessions. */
  readonly terminals: boolean;
}

/** The page for people, and its sign-in: a token or a one-time link is exchanged for a session cookie. */
export class Console {
  readonly #page = new ConsolePage();
  readonly #links = new SignInLinks<Omit<ConsoleSession, "expiresAt">>();

  /** @throws ConfigurationInvalid if the page isn't built */
  constructor(readonly options: ConsoleOptions) {}

  /** Whether it answers this request without a token: its page, or a sign-in. */
  serves(method: string, path: string): boolean {
    if (path !== root && !path.startsWith(`${root}/`)) return false;
    return path !== `${root}/links` || method === "GET";
  }

  /** Answers a request for which `serves` is true. @throws NotFound, HttpRefusal, RequestInvalid, Unauthorized */
  async answer(incoming: IncomingMessage, path: string): Promise<Response> {
    const { method = "GET", headers } = incoming;
    if (path !== `${root}/session`) {
      if (method !== "GET" && method !== "HEAD")
        throw new HttpRefusal(405, `Use GET ${root}.`, "not_found", { allow: "GET" });
      return this.#page.answer(path.slice(root.length), [headers["accept-encoding"] ?? ""].flat().join());
    }
    requireSameOrigin(incoming);
    switch (method) {
      case "GET":
        return await this.#describe(incoming);
      case "POST":
        return await this.#signIn(incoming);
      case "DELETE":
        return json(200, { ok: true }, { "set-cookie": cookieOf(incoming, "", 0) });
      default:
        throw new HttpRefusal(405, `Use GET, POST or DELETE ${root}/session.`, "not_found", {
          allow: "GET, POST, DELETE",
        });
    }
  }

  /** `POST /console/links`, of an admitted caller: the path of a one-time link that signs in as this caller. */
  async makeLink(incoming: IncomingMessage): Promise<Response> {
    const { bodies, operator } = this.options;
    const caller = callerOf(incoming);
    if (caller.kind === "page")
      throw new HttpRefusal(403, "A page's token doesn't sign in to the console.", "unauthorized");
    const { role, user } = validBody(linkSchema, await bodies.json(incoming, bodyLimit));
    const session = await this.#session(incoming);
    const token =
      caller.kind === "tenant" ? caller.tenant.token.replace(/^sha256:/, "") : operatorsToken(operator);
    const link = { token, role: lowerRole(role, session?.role ?? "operator"), user: session?.user ?? user };
    const code = this.#links.add(link, Date.now());
    // The code is in the fragment, which is sent to no server and kept in no log.
    return json(200, { ok: true, path: `${root}/#code=${code}`, expiresInMs: linkMs });
  }

  /**
   * Admits a request of the page: it has the session's cookie and its proof. False if it has no session, so that its token
   * counts.
   *
   * @param checkMachine refuses processes of runs, where the token is one that they may have read
   * @throws Unauthorized for a session that has ended; HttpRefusal 403 for what the session's role may not do
   */
  async admit(incoming: IncomingMessage, path: string, checkMachine: () => Promise<void>): Promise<boolean> {
    if (incoming.headers[proofHeader] === undefined) return false;
    requireSameOrigin(incoming);
    const { operator } = this.options;
    if (operator.kind === "everyone") return false;
    const session = await this.#session(incoming);
    if (session === undefined) throw new Unauthorized(signInFix);
    const tenant = this.#tenantWith(session.token);
    if (tenant !== undefined) setCaller(incoming, { kind: "tenant", tenant });
    else if (operator.kind === "local") await checkMachine();
    if (session.user !== undefined) setPerson(incoming, session.user);
    if (mayCall(session.role, incoming.method ?? "GET", path)) return true;
    const message = `This session's role is ${session.role}, which may not do this: sign in with a link of a higher role (\`ambit console --role operator\`).`;
    throw new HttpRefusal(403, message, "unauthorized");
  }

  async #describe(incoming: IncomingMessage): Promise<Response> {
    const { operator, terminals } = this.options;
    if (operator.kind === "everyone") return json(200, { signedIn: true, role: "operator", terminals });
    const session = await this.#session(incoming);
    if (session === undefined) return json(200, { signedIn: false });
    return json(200, this.#signedIn(session));
  }

  #signedIn({ token, role, user, expiresAt }: ConsoleSession) {
    const project = this.#tenantWith(token)?.project;
    return { signedIn: true, role, user, expiresAt, project, terminals: this.options.terminals };
  }

  async #signIn(incoming: IncomingMessage): Promise<Response> {
    const body = validBody(signInSchema, await this.options.bodies.json(incoming, bodyLimit));
    const exchanged = "code" in body ? this.#links.take(body.code, Date.now()) : this.#exchange(body.token);
    if (exchanged === undefined)
      throw new Unauthorized(
        "code" in body
          ? "This link was used already, or has expired: `ambit console` makes a new one."
          : "No token of this server: `ambit console` makes a link that needs none.",
      );
    const session = { ...exchanged, expiresAt: Date.now() + sessionMs };
    const key = await this.options.key();
    const cookie = sealSession(key, session);
    const headers = { "set-cookie": cookieOf(incoming, cookie, sessionMs / 1_000) };
    return json(200, { ...this.#signedIn(session), proof: proofOf(key, cookie) }, headers);
  }

  #exchange(token: string): Omit<ConsoleSession, "expiresAt"> | undefined {
    const { operator, tenants } = this.options;
    const isOperators = "token" in operator && presentsToken([token], operator.token);
    if (!isOperators && tenants.identify([token]) === undefined) return undefined;
    return { token: digestOf(token), role: "operator" satisfies Role };
  }

  async #session(incoming: IncomingMessage): Promise<ConsoleSession | undefined> {
    const proof = [incoming.headers[proofHeader] ?? ""].flat()[0] ?? "";
    const cookie = cookieIn(incoming);
    if (cookie === undefined || proof === "") return undefined;
    const key = await this.options.key();
    if (!isSame(proof, proofOf(key, cookie))) return undefined;
    const session = readSession(key, cookie, Date.now());
    return session !== undefined && this.#isCurrent(session.token) ? session : undefined;
  }

  /** Whether the token that was exchanged still counts. */
  #isCurrent(digest: string): boolean {
    const { operator } = this.options;
    if (this.#tenantWith(digest) !== undefined) return true;
    return "token" in operator && isSame(digest, digestOf(operator.token));
  }

  #tenantWith(digest: string) {
    return this.options.tenants.list.find(({ token }) => token === `sha256:${digest}`);
  }
}

const signInFix = "The session has ended: sign in again (`ambit console` makes a link).";

function operatorsToken(operator: OperatorAccess): string {
  if ("token" in operator) return digestOf(operator.token);
  const message = "needs no link: every program of this machine may call, so open /console";
  throw new RequestInvalid([{ path: "role", message }]);
}

const digestOf = (token: string) => createHash("sha256").update(token).digest("hex");

/** The page is this server's own. A browser says so of each request that isn't a navigation. @throws HttpRefusal */
function requireSameOrigin({ headers }: IncomingMessage): void {
  const { origin, host, "sec-fetch-site": site } = headers;
  const isForeign = origin !== undefined && (!URL.canParse(origin) || new URL(origin).host !== host);
  if (!isForeign && (site === undefined || site === "same-origin")) return;
  throw new HttpRefusal(403, "Only the console's own page may use its session.", "unauthorized");
}

/** Servers on several ports of a host have one jar of cookies. */
function cookieName({ headers }: IncomingMessage): string {
  const port = URL.parse(`http://${headers.host ?? ""}`)?.port ?? "";
  return `ambit-console${port === "" ? "" : `-${port}`}`;
}

function cookieOf(incoming: IncomingMessage, value: string, seconds: number): string {
  const secure = incoming.headers.origin?.startsWith("https:") ? "; Secure" : "";
  return `${cookieName(incoming)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

function cookieIn(incoming: IncomingMessage): string | undefined {
  const begin = `${cookieName(incoming)}=`;
  const pair = (incoming.headers.cookie ?? "")
    .split(";")
    .map((one) => one.trim())
    .find((one) => one.startsWith(begin));
  return pair?.slice(begin.length);
}
