// The official MCP SDK for TypeScript as the client of `haft mcp`.
//
// Usage: node sdk_client.cjs PACKAGES HAFT FOLDER [FLAG...]. PACKAGES is the folder that has
// node_modules. Lists the tools, calls each, and prints what came as JSON: {tools, answers}. The SDK
// itself checks every message against the protocol and structured content against output schemas.
const { mkdirSync, writeFileSync } = require("node:fs");
const { createServer } = require("node:http");
const { createRequire } = require("node:module");
const { join } = require("node:path");

const [packages, haft, folder, ...flags] = process.argv.slice(2);
const sdk = createRequire(join(packages, "package.json"));
const { Client } = sdk("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = sdk("@modelcontextprotocol/sdk/client/stdio.js");

const CALLS = [
  ["read", { path: "a.txt" }],
  ["edit", { path: "a.txt", edits: [{ old_text: "two", new_text: "three" }] }],
  ["write", { path: "n/b.txt", content: "x\n" }],
  ["grep", { pattern: "thr" }],
  ["find", { pattern: "*.txt" }],
  ["ls", {}],
  ["bash", { command: "echo out; touch made" }],
  ["job", { action: "list" }],
  ["read", { path: "n.ipynb" }],
  ["notebook_edit", { path: "n.ipynb", cell: 1, new_source: "beta" }],
  ["todo", { items: [{ text: "read it", status: "in_progress" }] }],
  ["think", { thought: "what next" }],
  ["sleep", { seconds: 0 }],
  ["send_file", { path: "a.txt", caption: "what was asked for" }],
  ["config", { get: "terminal.theme" }],
  ["web_fetch", { url: "PAGE" }],
  ["read", { path: "pixel.png" }],
  ["bash", { command: "echo wrong >&2; exit 3" }],
  ["read", { path: "missing.txt" }],
];

// A page of a server on this machine, which the person lets haft fetch.
async function page() {
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end("<title>Tea</title><h1>Tea</h1><p>Steep for three minutes.</p>");
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const host = `127.0.0.1:${server.address().port}`;
  mkdirSync(process.env.HAFT_HOME, { recursive: true });
  writeFileSync(join(process.env.HAFT_HOME, "settings.toml"), `web.private = ["${host}"]\n`);
  return { server, url: `http://${host}/` };
}

async function main() {
  const { server, url } = await page();
  const env = Object.fromEntries(["HAFT_HOME", "HOME", "PATH"].map((name) => [name, process.env[name]]));
  const args = ["mcp", "--root", folder, "--mode", "bypass", ...flags];
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StdioClientTransport({ command: haft, args, env, cwd: folder }));
  const { tools } = await client.listTools();
  const answers = [];
  for (const [name, given] of CALLS) {
    const input = given.url === "PAGE" ? { url } : given;
    answers.push([name, await client.callTool({ name, arguments: input })]);
  }
  await client.close();
  server.close();
  console.log(JSON.stringify({ tools, answers }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
