import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An audit event as a record of alk.events holds it, taken apart but not parsed, and the hashes that
 * it has to have. Knows neither Kafka nor the event before it.
 */
final class StoredEvent {
  /**
   * The one form in which events are stored. Its parts are canonical JSON (RFC 8785) already, so
   * hashes are taken of the text as it is, and nothing has to be parsed or written anew.
   */
  private static final Pattern FORM =
      Pattern.compile(
          ("\\{'id':T<id>,'timestamp':T<timestamp>"
                  + ",'actor':\\{'id':T<actorId>,'type':T<actorType>(?:,'email':T<email>)?\\}"
                  + ",'action':T<action>"
                  + ",'resource':\\{'id':T<resourceId>,'type':T<resourceType>(?:,'name':T<name>)?\\}"
                  + ",'outcome':T<outcome>(?:,'metadata':(?<metadata>\\{.*\\}))?"
                  + ",'tenant_id':T<tenant>,'sequence_number':(?<sequence>[1-9][0-9]{0,15})"
                  + ",'created_at':T<createdAt>,'prev_hash':T<prevHash>"
                  + "(?:,'details_salt':T<salt>,'details_hash':T<detailsHash>)?"
                  + ",'content_hash':T<contentHash>,'hash':T<hash>\\}")
              // Possessive: a long text must not take a stack frame for each of its characters.
              .replaceAll("T<(\\w+)>", "\"(?<$1>(?:[^\"\\\\\\\\]|\\\\\\\\.)*+)\"")
              .replace('\'', '"'),
          Pattern.DOTALL);

  private final Matcher parts;

  private StoredEvent(Matcher parts) {
    this.parts = parts;
  }

  /** Null for a record that is no stored event. */
  static StoredEvent of(String record) {
    Matcher parts = FORM.matcher(record);
    return parts.matches() ? new StoredEvent(parts) : null;
  }

  /** The text of a part, as it is in the record; null if the event has none. */
  String part(String name) {
    return parts.group(name);
  }

  long sequence() {
    return Long.parseLong(part("sequence"));
  }

  /** Hash of what may be erased elsewhere: e-mail, metadata, name of the resource. */
  String expectedDetailsHash() {
    List<String> details = new ArrayList<>();
    if (part("email") != null) details.add("\"actor_email\":\"" + part("email") + '"');
    if (part("metadata") != null) details.add("\"metadata\":" + part("metadata"));
    if (part("name") != null) details.add("\"resource_name\":\"" + part("name") + '"');
    String salt = part("salt") == null ? "" : part("salt");
    return details.isEmpty() ? null : sha256(salt + "\n{" + String.join(",", details) + "}");
  }

  String expectedContentHash() {
    String detailsHash = part("detailsHash");
    return sha256(
        filled("{'action':'%s','actor':{'id':'%s','type':'%s'}", "action", "actorId", "actorType")
            + (detailsHash == null ? "" : filled(",'details_hash':'%s'", "detailsHash"))
            + filled(",'id':'%s','outcome':'%s'", "id", "outcome")
            + filled(",'resource':{'id':'%s','type':'%s'}", "resourceId", "resourceType")
            + filled(",'timestamp':'%s'}", "timestamp"));
  }

  String expectedHash() {
    return sha256(
        String.join(
            "\n",
            "alk-chain-v1",
            part("tenant"),
            part("sequence"),
            part("createdAt"),
            part("contentHash"),
            part("prevHash")));
  }

  private String filled(String form, String... names) {
    Object[] values = new Object[names.length];
    for (int index = 0; index < names.length; index++) values[index] = part(names[index]);
    return String.format(form.replace('\'', '"'), values);
  }

  private static String sha256(String text) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
    } catch (NoSuchAlgorithmException impossible) {
      throw new AssertionError(impossible);
    }
  }
}
