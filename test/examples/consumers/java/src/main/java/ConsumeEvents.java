import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads alk.events from its beginning with Kafka's own client and checks the chains while it reads.
 *
 * <pre>
 *   mvn -q compile exec:java -Dexec.mainClass=ConsumeEvents -Dexec.args="--until-end"
 * </pre>
 *
 * Exit code 1: a break, each of which has a line.
 */
public final class ConsumeEvents {
  private final Settings settings;
  private final Map<String, ChainCheck.Head> heads = new HashMap<>();
  private long events;
  private long breaks;

  private ConsumeEvents(Settings settings) {
    this.settings = settings;
  }

  private void take(ConsumerRecord<String, String> record) {
    events += 1;
    String value = String.valueOf(record.value());
    String place = "partition %d offset %d".formatted(record.partition(), record.offset());
    StoredEvent event = StoredEvent.of(value);
    String found = ChainCheck.breakOf(event, headFor(event), place, record.key(), value);
    if (found != null) {
      breaks += 1;
      System.out.println("broken: " + found);
    }
    if (event == null) return;
    if (found == null && ChainCheck.erasureIn(event) != null) {
      System.out.println(ChainCheck.erasureIn(event));
    }
    heads.put(event.part("tenant"), ChainCheck.Head.of(event));
  }

  /** What the event has to follow; itself decides where its tenant begins in a partial topic. */
  private ChainCheck.Head headFor(StoredEvent event) {
    if (event == null) return ChainCheck.Head.NONE;
    ChainCheck.Head head = heads.get(event.part("tenant"));
    if (head != null) return head;
    return settings.isPartial() && event.sequence() > 1
        ? new ChainCheck.Head(event.sequence() - 1, event.part("prevHash"))
        : ChainCheck.Head.NONE;
  }

  private void read(KafkaConsumer<String, String> consumer) {
    List<TopicPartition> partitions =
        consumer.partitionsFor(settings.topic()).stream()
            .map(found -> new TopicPartition(found.topic(), found.partition()))
            .toList();
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
    // A position is beyond marks of transactions and what was aborted, too.
    while (!settings.untilEnd()
        || partitions.stream().anyMatch(one -> consumer.position(one) < ends.get(one))) {
      consumer.poll(Duration.ofMillis(500)).forEach(this::take);
    }
  }

  public static void main(String[] arguments) {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    ConsumeEvents program = new ConsumeEvents(Settings.of(arguments));
    Properties kafka = Settings.kafka();
    kafka.put("enable.auto.commit", "false");
    var text = new StringDeserializer();
    try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(kafka, text, text)) {
      Settings.onInterrupt(consumer::wakeup);
      program.read(consumer);
    } catch (WakeupException stopped) {
      // Ctrl-C: what was read so far is summed up.
    }
    System.out.println(ChainCheck.summary(program.events, program.heads.size(), program.breaks));
    Runtime.getRuntime().halt(program.breaks == 0 ? 0 : 1);
  }
}
