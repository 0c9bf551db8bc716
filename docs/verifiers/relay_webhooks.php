<?php

declare(strict_types=1);

/**
 * Verify webhooks of Relay: `RelayWebhooks::genuine(getallheaders(), file_get_contents('php://input'), [$secret])`.
 * PHP 8.0 or newer; for endpoints signed with Ed25519 its extension sodium.
 */
final class RelayWebhooks
{
    private const FRESH_FOR_S = 300;

    /**
     * Say whether a request is Relay's and fresh. It throws nothing, whatever was sent. $body is what came, before any
     * parsing; $keys are all that count now: secrets (whsec_…), public keys (whpk_…); $now is when the request came.
     */
    public static function genuine(array $headers, string $body, array $keys, ?int $now = null): bool
    {
        $headers = array_change_key_case($headers);
        $relay = isset($headers['relay-signature']);
        $form = $relay ? 'relay' : 'webhook';
        $stamp = (string) ($headers["$form-timestamp"] ?? '');
        $id = (string) ($headers['webhook-id'] ?? '');
        if (!preg_match('/\A[0-9]{1,12}\z/', $stamp) || abs(($now ?? time()) - (int) $stamp) > self::FRESH_FOR_S) {
            return false;
        }
        if (!$relay && !preg_match('/\A[A-Za-z0-9_-]+\z/', $id)) {
            return false;
        }
        $signed = ($relay ? "$stamp." : "$id.$stamp.") . $body;
        foreach (explode($relay ? ',' : ' ', (string) ($headers["$form-signature"] ?? '')) as $signature) {
            foreach ($keys as $key) {
                if (self::madeBy($key, $relay, $signed, trim($signature))) {
                    return true;
                }
            }
        }
        return false;
    }

    private static function madeBy(string $key, bool $relay, string $signed, string $signature): bool
    {
        if (!$relay && str_starts_with($key, 'whpk_') && str_starts_with($signature, 'v1a,')) {
            return preg_match('~\Awhpk_[A-Za-z0-9+/]{43}=\z~', $key)
                && preg_match('~\Av1a,[A-Za-z0-9+/]{86}==\z~', $signature)
                && sodium_crypto_sign_verify_detached(
                    base64_decode(substr($signature, 4)),
                    $signed,
                    base64_decode(substr($key, 5)),
                );
        }
        if (!preg_match('~\Awhsec_[A-Za-z0-9+/]{32,88}={0,2}\z~', $key)) {
            return false;
        }
        $secret = $relay ? $key : base64_decode(substr($key, 6), true);
        if ($secret === false) {
            return false;
        }
        $mac = hash_hmac('sha256', $signed, $secret, true);
        return hash_equals($relay ? 'v1=' . bin2hex($mac) : 'v1,' . base64_encode($mac), $signature);
    }
}
