import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Drives Kafka's Java client for the client matrix: carries out requests, one JSON object a line on standard input, and
 * answers each with one line on standard output. The argument is the broker.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL_WAIT = Duration.ofMillis(300);
    private static final Map<String, String> ASSIGNORS = Map.of("range", "RangeAssignor", "roundrobin",
        "RoundRobinAssignor", "sticky", "StickyAssignor", "cooperative-sticky", "CooperativeStickyAssignor");

    private final String addr;
    private final Admin admin;
    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();

    private Driver(String addr) {
        this.addr = addr;
        admin = Admin.create(settings());
    }

    private Properties settings() {
        Properties p = new Properties();
        p.put("bootstrap.servers", addr);
        return p;
    }

    private static String text(JsonNode r, String name) {
        return r.path(name).asText("");
    }

    private KafkaProducer<String, String> producer(JsonNode r) {
        Properties p = settings();
        p.put("compression.type", text(r, "codec").isEmpty() ? "none" : text(r, "codec"));
        p.put("enable.idempotence", r.path("idempotent").asBoolean() || !text(r, "transactional").isEmpty());
        if (!text(r, "transactional").isEmpty()) {
            p.put("transactional.id", text(r, "transactional"));
        }
        var producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer());
        if (!text(r, "transactional").isEmpty()) {
            producer.initTransactions();
        }
        return producer;
    }

    private KafkaConsumer<String, String> consumer(JsonNode r) {
        Properties p = settings();
        p.put("group.id", text(r, "group"));
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("isolation.level", r.path("committed").asBoolean() ? "read_committed" : "read_uncommitted");
        boolean consumerProtocol = text(r, "protocol").equals("consumer");
        if (consumerProtocol) {
            p.put("group.protocol", "consumer");
        } else {
            p.put("heartbeat.interval.ms", "300");
        }
        if (!text(r, "assignor").isEmpty()) {
            if (consumerProtocol) {
                p.put("group.remote.assignor", text(r, "assignor"));
            } else {
                p.put("partition.assignment.strategy",
                    "org.apache.kafka.clients.consumer." + ASSIGNORS.get(text(r, "assignor")));
            }
        }
        if (!text(r, "instance").isEmpty()) {
            p.put("group.instance.id", text(r, "instance"));
        }
        var consumer = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer());
        if (text(r, "pattern").isEmpty()) {
            List<String> topics = new ArrayList<>();
            r.path("topics").forEach(t -> topics.add(t.asText()));
            consumer.subscribe(topics);
        } else if (consumerProtocol) {
            consumer.subscribe(new SubscriptionPattern(text(r, "pattern"))); // the broker knows which topics match
        } else {
            consumer.subscribe(Pattern.compile(text(r, "pattern")));
        }
        return consumer;
    }

    private void produce(JsonNode r) throws Exception {
        var producer = producers.get(text(r, "id"));
        List<Future<?>> sent = new ArrayList<>();
        for (int i = 0; i < r.get("values").size(); i++) {
            Long time = r.has("times") ? r.get("times").get(i).asLong() : null;
            sent.add(producer.send(new ProducerRecord<>(text(r, "topic"), r.path("partition").asInt(), time, null,
                r.get("values").get(i).asText())));
        }
        producer.flush();
        for (Future<?> f : sent) {
            f.get();
        }
    }

    private void poll(JsonNode r, ObjectNode answer) {
        var consumer = consumers.get(text(r, "id"));
        ArrayNode records = answer.putArray("records");
        for (ConsumerRecord<String, String> c : consumer.poll(POLL_WAIT)) {
            records.addObject().put("topic", c.topic()).put("partition", c.partition()).put("offset", c.offset())
                .put("value", c.value());
        }
        TreeSet<String> assigned = new TreeSet<>();
        consumer.assignment().forEach(p -> assigned.add(p.toString()));
        ArrayNode all = answer.putArray("assigned");
        assigned.forEach(all::add);
    }

    private void commit(JsonNode r) {
        var consumer = consumers.get(text(r, "id"));
        if (text(r, "topic").isEmpty()) {
            consumer.commitSync();
        } else {
            consumer.commitSync(Map.of(new TopicPartition(text(r, "topic"), 0),
                new OffsetAndMetadata(r.path("offset").asLong())));
        }
    }

    private void copy(JsonNode r) throws Exception {
        ObjectNode from = ((ObjectNode) r.deepCopy()).put("committed", true);
        from.putArray("topics").add(text(r, "from"));
        try (var producer = producer(r); var consumer = consumer(from)) {
            for (int left = r.path("count").asInt(); left > 0; ) {
                for (ConsumerRecord<String, String> c : consumer.poll(POLL_WAIT)) {
                    if (left-- <= 0) {
                        return;
                    }
                    producer.beginTransaction();
                    producer.send(new ProducerRecord<>(text(r, "topic"), c.value()));
                    producer.sendOffsetsToTransaction(Map.of(new TopicPartition(c.topic(), c.partition()),
                        new OffsetAndMetadata(c.offset() + 1)), consumer.groupMetadata());
                    producer.commitTransaction();
                }
            }
        }
    }

    private void close(String id) {
        if (producers.containsKey(id)) {
            producers.remove(id).close();
        } else {
            consumers.remove(id).close();
        }
    }

    private void act(JsonNode r, ObjectNode answer) throws Exception {
        String id = text(r, "id");
        String topic = text(r, "topic");
        switch (text(r, "do")) {
            case "version" -> answer.put("version", AppInfoParser.getVersion());
            case "create" -> admin.createTopics(
                List.of(new NewTopic(topic, r.path("partitions").asInt(), (short) 1))).all().get();
            case "delete" -> admin.deleteTopics(List.of(topic)).all().get();
            case "list" -> {
                ArrayNode topics = answer.putArray("topics");
                admin.listTopics().names().get().forEach(topics::add);
            }
            case "time" -> {
                var partition = new TopicPartition(topic, 0);
                var found = admin.listOffsets(Map.of(partition, OffsetSpec.forTimestamp(r.path("time").asLong())));
                answer.put("offset", found.partitionResult(partition).get().offset());
            }
            case "producer" -> producers.put(id, producer(r));
            case "consumer" -> consumers.put(id, consumer(r));
            case "copy" -> copy(r);
            case "produce" -> produce(r);
            case "begin" -> producers.get(id).beginTransaction();
            case "end" -> {
                if (r.path("commit").asBoolean()) {
                    producers.get(id).commitTransaction();
                } else {
                    producers.get(id).abortTransaction();
                }
            }
            case "poll" -> poll(r, answer);
            case "commit" -> commit(r);
            case "close" -> close(id);
            default -> throw new IllegalArgumentException("no such request");
        }
    }

    public static void main(String[] args) throws Exception {
        Driver driver = new Driver(args[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                driver.act(JSON.readTree(line), answer);
            } catch (Exception e) {
                e.printStackTrace();
                answer.removeAll().put("error", e.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
        Runtime.getRuntime().halt(0);
    }
}
