// The client of `opc lsp`: VS Code's own, which is told what to start and which files are specs.
"use strict";

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** Start the server; it is asked about the YAML files that the setting `opc.specs` names. */
async function activate() {
  const settings = workspace.getConfiguration("opc");
  const [command, ...args] = settings.get("command");
  const documentSelector = [{ scheme: "file", language: "yaml", pattern: settings.get("specs") }];
  client = new LanguageClient("opc", "opc", { command, args }, { documentSelector });
  await client.start();
}

/** Stop the server. */
async function deactivate() {
  await client?.stop();
}

module.exports = { activate, deactivate };
