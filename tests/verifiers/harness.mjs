// Answers each line of standard input with what docs/verifiers/relay-webhooks.mjs says of it.
import { readFileSync } from "node:fs";
import { genuine } from "./relay-webhooks.mjs";

const bytes = (coded) => Buffer.from(coded, "base64");

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const [now, body, keys, named] = line.split("\t");
  const headers = {};
  for (const each of named.split(",").filter(Boolean)) {
    const at = each.indexOf("=");
    headers[each.slice(0, at).toLowerCase()] = bytes(each.slice(at + 1)).toString();
  }
  const known = keys.split(",").map((key) => bytes(key).toString());
  console.log(genuine(headers, bytes(body), known, Number(now)));
}
