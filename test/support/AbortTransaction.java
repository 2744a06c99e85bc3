import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.common.TopicPartition;

/**
 * Ends the transaction that begins at an offset, by the calls of `kafka-transactions.sh abort`.
 * Arguments: brokers, topic, partition, offset. Prints the epoch that it was ended with.
 */
public class AbortTransaction {
  public static void main(String[] arguments) throws Exception {
    TopicPartition partition = new TopicPartition(arguments[1], Integer.parseInt(arguments[2]));
    long offset = Long.parseLong(arguments[3]);
    Map<String, Object> settings = Map.of("bootstrap.servers", arguments[0]);
    try (Admin admin = Admin.create(settings)) {
      ProducerState open =
          admin.describeProducers(List.of(partition)).partitionResult(partition).get()
              .activeProducers().stream()
              .filter(state -> state.currentTransactionStartOffset().orElse(-1) == offset)
              .findFirst()
              .orElseThrow();
      AbortTransactionSpec spec =
          new AbortTransactionSpec(
              partition,
              open.producerId(),
              (short) open.producerEpoch(),
              open.coordinatorEpoch().orElse(0));
      admin.abortTransaction(spec).all().get();
      System.out.println(open.producerEpoch());
    }
  }
}
