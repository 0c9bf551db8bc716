<?php

declare(strict_types=1);

// Answers each line of standard input with what docs/verifiers/relay_webhooks.php says of it.
require __DIR__ . '/relay_webhooks.php';

while (($line = fgets(STDIN)) !== false) {
    [$now, $body, $keys, $named] = explode("\t", rtrim($line, "\n"));
    $headers = [];
    foreach (array_filter(explode(',', $named)) as $each) {
        [$name, $value] = explode('=', $each, 2);
        $headers[$name] = base64_decode($value);
    }
    $known = array_map('base64_decode', explode(',', $keys));
    echo RelayWebhooks::genuine($headers, base64_decode($body), $known, (int) $now) ? 'true' : 'false', "\n";
}
