import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/**
 * What the examples are told: broker and credentials by the environment, topic and end by arguments.
 *
 * @param topic alk.events unless another is named
 * @param untilEnd stop where the topic ends now, instead of waiting for more
 * @param isPartial the topic has lost its beginning to ALK_EVENTS_RETENTION
 */
record Settings(String topic, boolean untilEnd, boolean isPartial) {
  static Settings of(String[] arguments) {
    List<String> given = List.of(arguments);
    String topic =
        given.stream().filter(one -> !one.startsWith("--")).findFirst().orElse("alk.events");
    return new Settings(topic, given.contains("--until-end"), given.contains("--partial"));
  }

  /** How to connect, and to read what was committed only. */
  static Properties kafka() {
    Map<String, String> env = System.getenv();
    String user = env.get("KAFKA_SASL_USERNAME");
    String protocol = "true".equals(env.get("KAFKA_TLS")) ? "SSL" : "PLAINTEXT";
    Map<String, String> settings = new HashMap<>();
    settings.put("bootstrap.servers", env.getOrDefault("KAFKA_BROKERS", "127.0.0.1:9092"));
    settings.put("security.protocol", user == null ? protocol : "SASL_" + protocol);
    settings.put("isolation.level", "read_committed");
    settings.put("auto.offset.reset", "earliest");
    if (env.containsKey("KAFKA_TLS_CA_FILE")) {
      settings.put("ssl.truststore.type", "PEM");
      settings.put("ssl.truststore.location", env.get("KAFKA_TLS_CA_FILE"));
    }
    if (user != null) {
      String mechanism = env.getOrDefault("KAFKA_SASL_MECHANISM", "plain").toUpperCase();
      String module =
          mechanism.equals("PLAIN") ? "plain.PlainLoginModule" : "scram.ScramLoginModule";
      settings.put("sasl.mechanism", mechanism);
      settings.put(
          "sasl.jaas.config",
          "org.apache.kafka.common.security.%s required username=\"%s\" password=\"%s\";"
              .formatted(module, quoted(user), quoted(env.get("KAFKA_SASL_PASSWORD"))));
    }
    Properties properties = new Properties();
    properties.putAll(settings);
    return properties;
  }

  /** Calls `stop` at Ctrl-C, and lets the thread that is calling here end its work first. */
  static void onInterrupt(Runnable stop) {
    Thread caller = Thread.currentThread();
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  stop.run();
                  try {
                    caller.join();
                  } catch (InterruptedException interrupted) {
                    Thread.currentThread().interrupt();
                  }
                }));
  }

  private static String quoted(String text) {
    return text.replace("\\", "\\\\").replace("\"", "\\\"");
  }
}
