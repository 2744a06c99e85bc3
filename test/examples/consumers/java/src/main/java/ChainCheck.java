import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Checks an event against the last one of its tenant. Keeps nothing: whoever reads the topic keeps a
 * head for each tenant, in memory or in a state store.
 */
final class ChainCheck {
  private static final int SHOWN_CHARACTERS = 80;
  private static final Pattern ERASED = Pattern.compile("\"sequence_number\":([0-9]+)");

  /** Sequence number and hash of an event that the next one has to follow. */
  record Head(long sequence, String hash) {
    static final Head NONE = new Head(0, "0".repeat(64));

    static Head of(StoredEvent event) {
      return new Head(event.sequence(), event.part("hash"));
    }
  }

  private ChainCheck() {}

  /** What breaks the chain at this record, or null. `event` is null for one without the form. */
  static String breakOf(StoredEvent event, Head head, String place, String key, String record) {
    if (event == null) {
      String shown = record.substring(0, Math.min(SHOWN_CHARACTERS, record.length()));
      return "tenant %s sequence ? (%s): record is '%s', expected a stored event"
          .formatted(key, place, shown);
    }
    String wrong = wrongMember(event, head);
    return wrong == null
        ? null
        : "tenant %s sequence %d (%s): %s"
            .formatted(event.part("tenant"), event.sequence(), place, wrong);
  }

  private static String wrongMember(StoredEvent event, Head head) {
    String[][] expectations = {
      {"details_hash", event.part("detailsHash"), event.expectedDetailsHash()},
      {"content_hash", event.part("contentHash"), event.expectedContentHash()},
      {"sequence_number", event.part("sequence"), String.valueOf(head.sequence() + 1)},
      {"prev_hash", event.part("prevHash"), head.hash()},
      {"hash", event.part("hash"), event.expectedHash()},
    };
    for (String[] expectation : expectations) {
      if (Objects.equals(expectation[1], expectation[2])) continue;
      String found = Objects.requireNonNullElse(expectation[1], "absent");
      String expected = Objects.requireNonNullElse(expectation[2], "none");
      return "%s is %s, expected %s".formatted(expectation[0], found, expected);
    }
    return null;
  }

  /** What to do about an event that records an erasure, or null: the topic keeps the details. */
  static String erasureIn(StoredEvent event) {
    if (!event.part("action").equals("alk.event.erased") || event.part("metadata") == null) return null;
    Matcher erased = ERASED.matcher(event.part("metadata"));
    return erased.find()
        ? "erased: tenant %s sequence %s: delete its details from your copies"
            .formatted(event.part("tenant"), erased.group(1))
        : null;
  }

  /** The last line of a program that has read so much. */
  static String summary(long events, int tenants, long breaks) {
    String seen = "%d events of %d tenants".formatted(events, tenants);
    return breaks == 0 ? "intact: " + seen : "broken: %d breaks in %s".formatted(breaks, seen);
  }
}
