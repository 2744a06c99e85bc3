import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.CloseOptions;
import org.apache.kafka.streams.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.Stores;

/**
 * A Kafka Streams application that counts the events of alk.events by action, and checks the chains
 * while it reads. Counts and heads of chains survive a restart, so a second run goes on where the
 * first one stopped. Needs the right to make topics whose names begin with its application id.
 *
 * <pre>
 *   mvn -q compile exec:java -Dexec.mainClass=CountActions -Dexec.args="--until-end"
 * </pre>
 *
 * Exit code 1: this run has read a break, each of which has a line.
 */
public final class CountActions {
  private static final String HEADS = "heads";
  private static final String COUNTS = "counts";

  private final Settings settings;
  private final AtomicLong events = new AtomicLong();
  private final AtomicLong breaks = new AtomicLong();
  private final Set<String> tenants = ConcurrentHashMap.newKeySet();

  private CountActions(Settings settings) {
    this.settings = settings;
  }

  /** Checks each event against the head of its tenant in the store; passes on what was done. */
  private final class Checked implements Processor<String, String, String, String> {
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, String> heads;

    @Override
    public void init(ProcessorContext<String, String> given) {
      context = given;
      heads = given.getStateStore(HEADS);
    }

    @Override
    public void process(Record<String, String> record) {
      events.incrementAndGet();
      var at = context.recordMetadata().orElseThrow();
      String place = "partition %d offset %d".formatted(at.partition(), at.offset());
      StoredEvent event = StoredEvent.of(record.value());
      String found =
          ChainCheck.breakOf(event, headFor(event), place, record.key(), record.value());
      if (found != null) {
        breaks.incrementAndGet();
        System.out.println("broken: " + found);
      }
      if (event == null) return;
      if (found == null && ChainCheck.erasureIn(event) != null) {
        System.out.println(ChainCheck.erasureIn(event));
      }
      tenants.add(event.part("tenant"));
      heads.put(event.part("tenant"), event.part("sequence") + " " + event.part("hash"));
      context.forward(record.withKey(event.part("action")));
    }

    private ChainCheck.Head headFor(StoredEvent event) {
      if (event == null) return ChainCheck.Head.NONE;
      String head = heads.get(event.part("tenant"));
      if (head != null) {
        String[] parts = head.split(" ");
        return new ChainCheck.Head(Long.parseLong(parts[0]), parts[1]);
      }
      return settings.isPartial() && event.sequence() > 1
          ? new ChainCheck.Head(event.sequence() - 1, event.part("prevHash"))
          : ChainCheck.Head.NONE;
    }
  }

  private Topology topology() {
    var text = Serdes.String();
    var builder = new StreamsBuilder();
    builder.addStateStore(
        Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(HEADS), text, text));
    builder.stream(settings.topic(), Consumed.with(text, text))
        .process(Checked::new, Named.as("checked"), HEADS)
        .groupByKey(Grouped.with("by-action", text, text))
        .count(
            Materialized.<String, Long>as(Stores.inMemoryKeyValueStore(COUNTS))
                .withKeySerde(text)
                .withValueSerde(Serdes.Long()));
    return builder.build();
  }

  private Properties configuration() {
    Properties properties = Settings.kafka();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, applicationId());
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    return properties;
  }

  private String applicationId() {
    return "count-actions-" + settings.topic();
  }

  /** Until the topic, as long as it is now, and what follows from it, is counted. */
  private void awaitEnd(Admin admin) throws Exception {
    // An open transaction may still be aborted in the topic; in our own it is yet to be counted.
    var ends = endsOf(admin, settings.topic(), IsolationLevel.READ_COMMITTED);
    while (!isRead(admin, ends)) Thread.sleep(200);
    ends = endsOf(admin, applicationId() + "-by-action-repartition", IsolationLevel.READ_UNCOMMITTED);
    while (!isRead(admin, ends)) Thread.sleep(200);
  }

  /** Where each partition that holds something ends. */
  private static Map<TopicPartition, Long> endsOf(Admin admin, String topic, IsolationLevel level)
      throws Exception {
    List<TopicPartition> partitions =
        admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().stream()
            .map(one -> new TopicPartition(topic, one.partition()))
            .toList();
    Map<TopicPartition, Long> ends = offsetsOf(admin, partitions, OffsetSpec.latest(), level);
    Map<TopicPartition, Long> starts = offsetsOf(admin, partitions, OffsetSpec.earliest(), level);
    ends.entrySet().removeAll(starts.entrySet());
    return ends;
  }

  private static Map<TopicPartition, Long> offsetsOf(
      Admin admin, List<TopicPartition> partitions, OffsetSpec which, IsolationLevel level)
      throws Exception {
    Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
    for (TopicPartition one : partitions) wanted.put(one, which);
    Map<TopicPartition, Long> offsets = new HashMap<>();
    admin
        .listOffsets(wanted, new ListOffsetsOptions(level))
        .all()
        .get()
        .forEach((partition, found) -> offsets.put(partition, found.offset()));
    return offsets;
  }

  private boolean isRead(Admin admin, Map<TopicPartition, Long> ends) throws Exception {
    Map<TopicPartition, OffsetAndMetadata> read =
        admin.listConsumerGroupOffsets(applicationId()).partitionsToOffsetAndMetadata().get();
    return ends.entrySet().stream()
        .allMatch(
            end -> {
              OffsetAndMetadata position = read.get(end.getKey());
              return position != null && position.offset() >= end.getValue();
            });
  }

  private int run() throws Exception {
    var running = new CountDownLatch(1);
    var stopped = new CountDownLatch(1);
    try (KafkaStreams streams = new KafkaStreams(topology(), configuration());
        Admin admin = Admin.create(Settings.kafka())) {
      streams.setUncaughtExceptionHandler(
          error -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(2);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
          });
      Settings.onInterrupt(stopped::countDown);
      streams.setStateListener(
          (now, before) -> {
            if (now == KafkaStreams.State.RUNNING) running.countDown();
          });
      streams.start();
      running.await();
      if (settings.untilEnd()) awaitEnd(admin);
      else stopped.await();
      var counts =
          streams.store(
              StoreQueryParameters.fromNameAndType(COUNTS, QueryableStoreTypes.<String, Long>keyValueStore()));
      try (var all = counts.all()) {
        all.forEachRemaining(one -> System.out.println(one.value + " " + one.key));
      }
      // The next run need not wait until the group has given up this one.
      streams.close(
          CloseOptions.timeout(Duration.ofSeconds(10))
              .withGroupMembershipOperation(GroupMembershipOperation.LEAVE_GROUP));
    }
    System.out.println(ChainCheck.summary(events.get(), tenants.size(), breaks.get()));
    return breaks.get() == 0 ? 0 : 1;
  }

  public static void main(String[] arguments) throws Exception {
    System.setProperty("org.slf4j.simpleLogger.defaultLogLevel", "error");
    Runtime.getRuntime().halt(new CountActions(Settings.of(arguments)).run());
  }
}
