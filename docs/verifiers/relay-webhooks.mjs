// Verify webhooks of Relay: `genuine(request.headers, body, [SECRET])`. Node 16 or newer, nothing else.
import { createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";

const FRESH_FOR_S = 300;
const SECRET = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;
const PUBLIC_KEY = /^whpk_[A-Za-z0-9+/]{43}=$/;
const BY_PAIR = /^v1a,[A-Za-z0-9+/]{86}==$/;

/**
 * Say whether a request is Relay's and fresh. It throws nothing, whatever was sent.
 * `headers` are as Node gives them, by lower-case name (of a fetch Request: `Object.fromEntries(request.headers)`);
 * `body` is the Buffer that came, before any parsing; `keys` are all that count now: secrets (`whsec_…`), public
 * keys (`whpk_…`); `nowS` is when the request came, if it is checked later.
 */
export function genuine(headers, body, keys, nowS = Date.now() / 1000) {
  const form = "relay-signature" in headers ? "relay" : "webhook";
  const stamp = String(headers[`${form}-timestamp`] ?? "");
  const senderId = String(headers["webhook-id"] ?? "");
  if (!/^[0-9]{1,12}$/.test(stamp) || Math.abs(nowS - Number(stamp)) > FRESH_FOR_S) return false;
  if (form === "webhook" && !/^[A-Za-z0-9_-]+$/.test(senderId)) return false;
  const signed = Buffer.concat([Buffer.from(form === "relay" ? `${stamp}.` : `${senderId}.${stamp}.`), body]);
  const signatures = String(headers[`${form}-signature`] ?? "").split(form === "relay" ? "," : " ");
  return keys.some((key) => signatures.some((signature) => madeBy(key, form, signed, signature.trim())));
}

function madeBy(key, form, signed, signature) {
  if (form === "webhook" && PUBLIC_KEY.test(key) && BY_PAIR.test(signature)) {
    return madeByPair(Buffer.from(key.slice(5), "base64"), signed, Buffer.from(signature.slice(4), "base64"));
  }
  if (!SECRET.test(key)) return false;
  const made =
    form === "relay"
      ? "v1=" + createHmac("sha256", key).update(signed).digest("hex")
      : "v1," + createHmac("sha256", Buffer.from(key.slice(6), "base64")).update(signed).digest("base64");
  const [one, other] = [Buffer.from(made), Buffer.from(signature)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function madeByPair(publicKey, signed, signature) {
  const jwk = { kty: "OKP", crv: "Ed25519", x: publicKey.toString("base64url") };
  return verify(null, signed, createPublicKey({ key: jwk, format: "jwk" }), signature);
}
