"""librdkafka, through confluent-kafka."""
import confluent_kafka as ck
from confluent_kafka import admin

from driver import PATIENCE, POLL_WAIT, seen


class Library:
    version = f"{ck.__version__}, librdkafka {ck.libversion()[0]}"

    def __init__(self, addr):
        self.base = {"bootstrap.servers": addr}
        self.admin = admin.AdminClient(self.base)

    def create(self, topic, partitions):
        self.admin.create_topics([admin.NewTopic(topic, partitions, 1)])[topic].result(PATIENCE)

    def remove(self, topic):
        self.admin.delete_topics([topic])[topic].result(PATIENCE)

    def list(self):
        return self.admin.list_topics(timeout=PATIENCE).topics

    def offset_for_time(self, topic, ms):
        partition = ck.TopicPartition(topic, 0)
        spec = admin.OffsetSpec.for_timestamp(ms)
        return self.admin.list_offsets({partition: spec})[partition].result(PATIENCE).offset

    def producer(self, r):
        return Producer(self.base, r)

    def consumer(self, r):
        return Consumer(self.base, r)

    def copy(self, r):
        producer = ck.Producer(self.base | {"transactional.id": r["transactional"]})
        producer.init_transactions(PATIENCE)
        consumer = Consumer(self.base, r | {"topics": [r["from"]], "committed": True}).c
        left = r["count"]
        while left > 0:
            records = consumer.consume(min(left, 4), PATIENCE)
            producer.begin_transaction()
            for m in records:
                producer.produce(r["topic"], m.value())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), PATIENCE)
            producer.commit_transaction(PATIENCE)
            left -= len(records)
        consumer.close()


class Producer:
    def __init__(self, base, r):
        config = base | {"compression.type": r.get("codec") or "none", "linger.ms": 10}
        if r.get("idempotent"):
            config["enable.idempotence"] = True
        if r.get("transactional"):
            config["transactional.id"] = r["transactional"]
        self.p = ck.Producer(config)
        if r.get("transactional"):
            self.p.init_transactions(PATIENCE)

    def produce(self, topic, partition, values, times):
        errors = []
        for value, time in zip(values, times):
            more = {} if time is None else {"timestamp": time}
            self.p.produce(topic, value, partition=partition, **more,
                           on_delivery=lambda e, _: errors.append(e) if e else None)
        if self.p.flush(PATIENCE):
            raise TimeoutError("not all records are delivered")
        if errors:
            raise ck.KafkaException(errors[0])

    def begin(self):
        self.p.begin_transaction()

    def end(self, commit):
        if commit:
            self.p.commit_transaction(PATIENCE)
        else:
            self.p.abort_transaction(PATIENCE)

    def close(self):
        self.p.flush(PATIENCE)


class Consumer:
    def __init__(self, base, r):
        config = base | {
            "group.id": r["group"], "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "isolation.level": "read_committed" if r.get("committed") else "read_uncommitted",
            "fetch.wait.max.ms": 100}
        if r.get("protocol") == "consumer":
            config["group.protocol"] = "consumer"
            if r.get("assignor"):
                config["group.remote.assignor"] = r["assignor"]
        else:
            config["heartbeat.interval.ms"] = 300
            if r.get("assignor"):
                config["partition.assignment.strategy"] = r["assignor"]
        if r.get("instance"):
            config["group.instance.id"] = r["instance"]
        self.c = ck.Consumer(config)
        self.c.subscribe([r["pattern"]] if r.get("pattern") else r["topics"])

    def poll(self):
        records = []
        for m in self.c.consume(100, POLL_WAIT):
            if not m.error():
                records.append(seen(m.topic(), m.partition(), m.offset(), m.value()))
            elif not m.error().retriable():
                raise ck.KafkaException(m.error())
        return records, [f"{p.topic}-{p.partition}" for p in self.c.assignment()]

    def commit(self, topic, offset):
        offsets = [ck.TopicPartition(topic, 0, offset)] if topic else self.c.position(self.c.assignment())
        for p in self.c.commit(offsets=offsets, asynchronous=False):
            if p.error:
                raise ck.KafkaException(p.error)

    def close(self):
        self.c.close()
