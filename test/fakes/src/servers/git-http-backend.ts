import { spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * `git http-backend` as a CGI program (RFC 3875), as web servers run it: it fetches from and pushes to every repository below
 * `folder`.
 *
 * @param path of the request, where it isn't that of its URL.
 * @param isPartial whether a fetch may leave contents out.
 */
export function serveGit(
  folder: string,
  request: IncomingMessage,
  response: ServerResponse,
  path?: string,
  { isPartial }: { readonly isPartial: boolean } = { isPartial: true },
): void {
  const { pathname, search } = new URL(request.url ?? "/", "https://forge");
  const { headers } = request;
  const settings = ["http.receivepack=true", `uploadpack.allowFilter=${isPartial}`, "safe.directory=*"];
  const backend = spawn("git", [...settings.flatMap((setting) => ["-c", setting]), "http-backend"], {
    env: {
      PATH: process.env.PATH,
      HOME: "/nonexistent",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      GIT_PROJECT_ROOT: folder,
      GIT_HTTP_EXPORT_ALL: "1",
      REMOTE_USER: "robot",
      REQUEST_METHOD: request.method,
      PATH_INFO: path ?? pathname,
      QUERY_STRING: search.slice(1),
      CONTENT_TYPE: headers["content-type"] ?? "",
      HTTP_CONTENT_ENCODING: String(headers["content-encoding"] ?? ""),
      HTTP_GIT_PROTOCOL: String(headers["git-protocol"] ?? ""),
    },
    stdio: ["pipe", "pipe", "ignore"],
  });
  request.pipe(backend.stdin);
  backend.stdin.on("error", () => {});
  let head = Buffer.alloc(0);
  const onHead = (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end === -1) return;
    backend.stdout.off("data", onHead);
    const lines = head
      .subarray(0, end)
      .toString()
      .split("\r\n")
      .map((line) => line.split(/: (.*)/s));
    const status = Number(lines.find(([name]) => name === "Status")?.[1]?.slice(0, 3) ?? 200);
    response.writeHead(status, Object.fromEntries(lines.filter(([name]) => name !== "Status")));
    response.write(head.subarray(end + 4));
    backend.stdout.pipe(response);
  };
  backend.stdout.on("data", onHead);
}
