import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.TreeMap;

/** Answers each line of standard input with what docs/verifiers/RelayWebhooks.java says of it. */
final class Harness {
    public static void main(String[] arguments) throws IOException {
        var lines = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            var keys = new ArrayList<String>();
            for (String key : parts[2].split(",")) keys.add(new String(bytes(key), UTF_8));
            var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
            for (String each : parts[3].split(",")) {
                int at = each.indexOf('=');
                if (at > 0) headers.put(each.substring(0, at), new String(bytes(each.substring(at + 1)), UTF_8));
            }
            var now = Instant.ofEpochSecond(Long.parseLong(parts[0]));
            System.out.println(RelayWebhooks.genuine(headers::get, bytes(parts[1]), keys, now));
        }
    }

    private static byte[] bytes(String coded) {
        return Base64.getDecoder().decode(coded);
    }
}
