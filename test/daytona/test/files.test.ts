import { describe, expect, it } from "vitest";
import { output, useLoopback, useSandbox } from "./loopback.js";

describe("files", () => {
  const fixture = useLoopback();
  const sandbox = useSandbox(fixture);

  it("are uploaded and downloaded together, unchanged, and parent folders are created", async () => {
    const { fs } = sandbox();
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 256));
    await fs.uploadFiles([
      { source: bytes, destination: "deep/er/bytes.bin" },
      { source: Buffer.from("text"), destination: "/tmp/text.txt" },
    ]);
    expect((await fs.downloadFile("deep/er/bytes.bin")).equals(bytes)).toBe(true);
    expect(await output(sandbox(), "cat /tmp/text.txt; stat -c %a /tmp/text.txt")).toBe("text644");
    const both = await fs.downloadFiles([{ source: "/tmp/text.txt" }, { source: "nowhere" }]);
    expect(both.map(({ error }) => error !== undefined)).toEqual([false, true]);
  });

  it("are described, listed, changed and deleted", async () => {
    const { fs } = sandbox();
    await fs.createFolder("listed", "750");
    await fs.uploadFile(Buffer.from("12345"), "listed/five.txt");
    await fs.setFilePermissions("listed/five.txt", { mode: "600", owner: "daytona", group: "daytona" });
    expect(await fs.getFileDetails("listed/five.txt")).toMatchObject({
      name: "five.txt",
      size: 5,
      mode: "-rw-------",
      permissions: "0600",
      owner: "1000",
      group: "1000",
      isDir: false,
    });
    expect((await fs.listFiles("listed")).map(({ name }) => name)).toEqual(["five.txt"]);
    expect(await fs.getFileDetails("listed")).toMatchObject({ mode: "drwxr-x---", isDir: true });
    await fs.moveFiles("listed/five.txt", "listed/moved.txt");
    await expect(fs.deleteFile("listed")).rejects.toMatchObject({ statusCode: 400 });
    await fs.deleteFile("listed", true);
    await expect(fs.getFileDetails("listed")).rejects.toMatchObject({ statusCode: 404 });
  });

  it("fail with the toolbox's codes", async () => {
    const { fs } = sandbox();
    await expect(fs.downloadFile("nowhere")).rejects.toMatchObject({
      statusCode: 404,
      code: "FILE_NOT_FOUND",
    });
    await expect(fs.downloadFile("/tmp")).rejects.toMatchObject({ code: "INVALID_FILE_PATH" });
    await expect(fs.uploadFile(Buffer.from("x"), "/usr/bin/nothing")).rejects.toMatchObject({
      statusCode: 400,
    });
  });

  it("are below the work folder unless their path is absolute", async () => {
    expect(await sandbox().getWorkDir()).toBe("/root");
    expect(await sandbox().getUserHomeDir()).toBe("/root");
    await sandbox().fs.uploadFile(Buffer.from("here"), "relative.txt");
    expect(await output(sandbox(), "cat ~/relative.txt")).toBe("here");
  });
});
