// Plays scripts into xterm.js and prints the logical lines with text that stand there in the end.
// A script is a line of JSON on standard input: {columns, rows, steps}, and a step is a text to
// write or a pair of columns and rows. The answer is a line of JSON: an array of lines.
"use strict";
const readline = require("node:readline");
const { Terminal } = require("@xterm/headless");

async function play({ columns, rows, steps }) {
  const terminal = new Terminal({ cols: columns, rows, scrollback: 100000, allowProposedApi: true });
  for (const step of steps) {
    if (typeof step === "string") {
      await new Promise((done) => terminal.write(step, done));
    } else {
      terminal.resize(step[0], step[1]);
    }
  }
  const buffer = terminal.buffer.active;
  const lines = [];
  for (let at = 0; at < buffer.length; at++) {
    const row = buffer.getLine(at);
    const next = buffer.getLine(at + 1);
    const text = row.translateToString(!(next && next.isWrapped));
    if (row.isWrapped && lines.length > 0) lines[lines.length - 1] += text;
    else lines.push(text);
  }
  terminal.dispose();
  return lines.map((line) => line.trimEnd()).filter((line) => line !== "");
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await play(JSON.parse(line))));
  }
})();
