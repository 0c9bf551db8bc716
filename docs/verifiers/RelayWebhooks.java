import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.Signature;
import java.security.spec.X509EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.function.UnaryOperator;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Verifies webhooks of Relay: {@code RelayWebhooks.genuine(request::getHeader, body, List.of(secret), Instant.now())}.
 * Java 17 or newer, nothing else.
 */
public final class RelayWebhooks {
    private static final Duration FRESH_FOR = Duration.ofMinutes(5);
    private static final byte[] ED25519 = HexFormat.of().parseHex("302a300506032b6570032100");

    private RelayWebhooks() {}

    /**
     * Says whether a request is Relay's and fresh. It throws nothing, whatever was sent. The header is looked up in any
     * case and null when absent; the body is what came, before any parsing; keys are all that count now: secrets
     * (whsec_…), public keys (whpk_…); now is when the request came.
     */
    public static boolean genuine(UnaryOperator<String> header, byte[] body, List<String> keys, Instant now) {
        boolean relay = header.apply("Relay-Signature") != null;
        String signatures = header.apply(relay ? "Relay-Signature" : "webhook-signature");
        String stamp = header.apply(relay ? "Relay-Timestamp" : "webhook-timestamp");
        String id = relay ? "" : header.apply("webhook-id");
        if (signatures == null || stamp == null || id == null) return false;
        if (!stamp.matches("[0-9]{1,12}") || !relay && !id.matches("[A-Za-z0-9_-]+")) return false;
        Duration age = Duration.between(Instant.ofEpochSecond(Long.parseLong(stamp)), now);
        if (age.abs().compareTo(FRESH_FOR) > 0) return false;
        var signed = new ByteArrayOutputStream();
        signed.writeBytes((relay ? stamp + "." : id + "." + stamp + ".").getBytes(UTF_8));
        signed.writeBytes(body);
        for (String signature : signatures.split(relay ? "," : " "))
            for (String key : keys)
                if (madeBy(key, relay, signed.toByteArray(), signature.strip())) return true;
        return false;
    }

    private static boolean madeBy(String key, boolean relay, byte[] signed, String signature) {
        try {
            if (!relay && key.startsWith("whpk_") && signature.startsWith("v1a,"))
                return madeByPair(key.substring(5), signed, signature.substring(4));
            if (!key.matches("whsec_[A-Za-z0-9+/]{32,88}={0,2}")) return false;
            byte[] secret = relay ? key.getBytes(UTF_8) : Base64.getDecoder().decode(key.substring(6));
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(secret, "HmacSHA256"));
            byte[] made = mac.doFinal(signed);
            String text =
                    relay ? "v1=" + HexFormat.of().formatHex(made) : "v1," + Base64.getEncoder().encodeToString(made);
            return MessageDigest.isEqual(text.getBytes(UTF_8), signature.getBytes(UTF_8));
        } catch (GeneralSecurityException | IllegalArgumentException malformed) {
            return false;
        }
    }

    private static boolean madeByPair(String key, byte[] signed, String signature) throws GeneralSecurityException {
        var encoded = new ByteArrayOutputStream();
        encoded.writeBytes(ED25519);
        encoded.writeBytes(Base64.getDecoder().decode(key));
        Signature verifier = Signature.getInstance("Ed25519");
        verifier.initVerify(KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(encoded.toByteArray())));
        verifier.update(signed);
        return verifier.verify(Base64.getDecoder().decode(signature));
    }
}
