import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions with Kafka's client: argument 1 is the broker. Prints FENCED when the first producer is told so. */
public class Transactions {
    static KafkaProducer<String, String> producer(String addr) {
        var p = new KafkaProducer<>(Map.<String, Object>of("bootstrap.servers", addr, "transactional.id", "java"),
            new StringSerializer(), new StringSerializer());
        p.initTransactions();
        return p;
    }

    static void send(KafkaProducer<String, String> p, String value) {
        p.send(new ProducerRecord<>("t", value));
        p.flush();
    }

    static void offset(KafkaProducer<String, String> p, long offset) {
        p.sendOffsetsToTransaction(Map.of(new TopicPartition("t", 0), new OffsetAndMetadata(offset)),
            new ConsumerGroupMetadata("g"));
    }

    public static void main(String[] args) {
        var first = producer(args[0]);
        first.beginTransaction();
        send(first, "a");
        send(first, "b");
        offset(first, 7);
        first.commitTransaction();
        first.beginTransaction();
        send(first, "x");
        offset(first, 9);
        first.abortTransaction();
        first.beginTransaction();
        send(first, "y");
        var second = producer(args[0]);
        try {
            first.commitTransaction();
        } catch (ProducerFencedException | InvalidProducerEpochException e) {
            System.out.println("FENCED " + e);
        } catch (KafkaException e) {
            System.out.println("other error: " + e);
        }
        for (String value : new String[] {"c", "end"}) {
            second.beginTransaction();
            send(second, value);
            second.commitTransaction();
        }
        System.exit(0);
    }
}
