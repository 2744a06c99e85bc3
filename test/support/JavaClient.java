import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A client as it comes with Java, nothing set: it prefers HTTP/2 and offers the upgrade with the
 * first request of each connection. Arguments: address, key, requests, connections. Prints how often
 * each outcome was seen: "<kind> <status>", or "<kind> <exception>".
 */
public class JavaClient {
  private static final String EVENT =
      "{\"actor\":{\"id\":\"java\",\"type\":\"system\"},\"action\":\"client.request\","
          + "\"resource\":{\"id\":\"r%d\",\"type\":\"request\"},\"outcome\":\"success\","
          + "\"metadata\":{\"text\":\"%s\"}}";

  private static HttpRequest request(String url, String key, int n) {
    HttpRequest.Builder builder =
        HttpRequest.newBuilder().header("Authorization", "Bearer " + key);
    if (n % 3 == 0) return builder.uri(URI.create(url + "/v1/events?page_size=1")).build();
    String event = String.format(EVENT, n, "x".repeat(n % 7 * 1000));
    String body = "{\"events\":[" + event + "]}";
    BodyPublisher publisher =
        n % 3 == 1
            ? BodyPublishers.ofString(body)
            // Without a length: sent in chunks.
            : BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(body.getBytes()));
    return builder
        .uri(URI.create(url + "/v1/events/batch?sync=true"))
        .header("Content-Type", "application/json")
        .POST(publisher)
        .build();
  }

  public static void main(String[] arguments) throws Exception {
    String url = arguments[0];
    String key = arguments[1];
    int requests = Integer.parseInt(arguments[2]);
    int connections = Integer.parseInt(arguments[3]);
    String[] kinds = {"get", "post", "stream"};
    ExecutorService pool = Executors.newFixedThreadPool(connections);
    List<Future<String>> outcomes = new ArrayList<>();
    HttpClient shared = HttpClient.newHttpClient();
    for (int n = 0; n < requests; n++) {
      int number = n;
      Callable<String> call =
          () -> {
            // Every tenth has a client, and so a first request of a connection, of its own.
            HttpClient client = number % 10 == 0 ? HttpClient.newHttpClient() : shared;
            String kind = kinds[number % 3];
            try {
              return kind
                  + " "
                  + client.send(request(url, key, number), BodyHandlers.ofString()).statusCode();
            } catch (Exception error) {
              return kind + " " + error;
            }
          };
      outcomes.add(pool.submit(call));
    }
    Map<String, Integer> counts = new TreeMap<>();
    for (Future<String> outcome : outcomes) counts.merge(outcome.get(), 1, Integer::sum);
    counts.forEach((outcome, count) -> System.out.println(count + " " + outcome));
    System.exit(0);
  }
}
