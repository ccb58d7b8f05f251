// In a network namespace of its own: whether a user and root reach a service, before and after the rules of its argument.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";

const commands = JSON.parse(process.argv[2] ?? "[]");
const port = 2280;
const hosts = ["127.0.0.1", "127.9.9.9", "[::1]"];
const ask = `
  const uid = Number(process.argv[1]);
  process.setgroups([]);
  process.setgid(uid);
  process.setuid(uid);
  const one = (host) => fetch("http://" + host + ":${port}", { signal: AbortSignal.timeout(3000) })
    .then((answer) => answer.text(), () => "refused");
  Promise.all(${JSON.stringify(hosts)}.map(one)).then((said) => {
    console.log(uid, said.join(" "));
    process.exit();
  });
`;
/** @param {number} uid */
const asked = async (uid) => {
  const child = spawn(process.execPath, ["-e", ask, `${uid}`], { stdio: ["ignore", "inherit", "inherit"] });
  await once(child, "close");
};

execFileSync("ip", ["link", "set", "lo", "up"]);
const server = createServer((_request, response) => response.end("obeyed"));
server.listen(port, "::");
await once(server, "listening");
await asked(61_000);
for (const { program, args, input } of commands) execFileSync(program, args, { input });
await asked(61_000);
await asked(0);
server.closeAllConnections();
server.close();
