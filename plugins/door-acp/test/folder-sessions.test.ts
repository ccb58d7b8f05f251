import { expect, it } from "vitest";
import { FolderSessions } from "../src/folder-sessions.js";

const project = /acp_[0-9a-f]{16}/.exec(FolderSessions.of("/srv/app", fetch).newId())?.[0] ?? "";
const idOf = (number: number) => `${project}_00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;

it("lists the latest sessions of a folder, reads no further, and leaves out what no editor began", async () => {
  const pages: (string | null)[] = [];
  const runsOf = (from: number) => [
    { runId: `door-${from}`, sessionId: "another door's.session" },
    { runId: `alone-${from}` },
    ...Array.from({ length: 60 }, (_, index) => ({
      runId: `r-${from + index}`,
      sessionId: `${idOf(from + index)}.0`,
      state: "ended",
      createdAt: `2026-01-01T00:00:00.${from + index}Z`,
    })),
  ];
  const sessions = FolderSessions.of("/srv/app", async (input) => {
    const { pathname, searchParams } = new URL(String(input));
    if (pathname !== "/runs") return Response.json({ request: { messages: [] } });
    pages.push(searchParams.get("after"));
    return Response.json({ runs: runsOf(100 * pages.length) });
  });
  const listed = await sessions.list();
  expect(listed.map(({ sessionId }) => sessionId)).toEqual([
    ...Array.from({ length: 60 }, (_, index) => idOf(100 + index)),
    ...Array.from({ length: 40 }, (_, index) => idOf(200 + index)),
  ]);
  expect(pages).toEqual([null, "r-159"]);
});
