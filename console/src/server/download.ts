/** Saves what the server answers under a name: as bytes, which no browser shows as a page. */
export async function download(answer: Promise<Response | string>, name: string): Promise<void> {
  const content = await answer;
  const bytes = typeof content === "string" ? content : await content.arrayBuffer();
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
