// Runs in a sandbox: looks for texts wherever they could be read, and prints where each was found as a line of JSON.
// Argument: {"values": {id: text in base64}, "folders": []}. Only in base64, or it would find itself.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const { values, folders } = JSON.parse(process.argv[process.argv.length - 1]);
const wanted = Object.entries(values).map(([id, text]) => [id, Buffer.from(text, "base64")]);
const found = Object.fromEntries(wanted.map(([id]) => [id, []]));
const most = { files: 20_000, bytes: 65_536 };
let seen = 0;

// What can't be read is what is hoped for.
const attempt = (action, otherwise) => {
  try {
    return action();
  } catch {
    return otherwise;
  }
};
const search = (place, content) => {
  for (const [id, text] of wanted) if (content.includes(text)) found[id].push(place);
};
const head = (file) => {
  const descriptor = fs.openSync(file, "r");
  try {
    const content = Buffer.alloc(most.bytes);
    return content.subarray(0, fs.readSync(descriptor, content, 0, content.length, 0));
  } finally {
    fs.closeSync(descriptor);
  }
};
const walk = (folder) => {
  for (const entry of attempt(() => fs.readdirSync(folder, { withFileTypes: true }), [])) {
    if (seen >= most.files) return;
    const place = path.join(folder, entry.name);
    if (entry.isDirectory()) walk(place);
    else if (entry.isFile()) {
      seen += 1;
      attempt(() => search(place, head(place)));
    }
  }
};

search("environment", Buffer.from(Object.values(process.env).join("\0")));
for (const pid of fs.readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
  for (const part of ["environ", "cmdline"]) {
    const place = `/proc/${pid}/${part}`;
    attempt(() => search(place, fs.readFileSync(place)));
  }
}
for (const folder of folders) walk(folder);
process.stdout.write(
  `${JSON.stringify({ found, names: Object.keys(process.env).sort(), pid: process.pid })}\n`,
);
