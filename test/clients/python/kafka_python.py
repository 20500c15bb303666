"""kafka-python."""
import kafka
from kafka import admin
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from driver import PATIENCE, POLL_WAIT, seen

ASSIGNORS = {
    "range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor, "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor}


class Library:
    version = kafka.__version__

    def __init__(self, addr):
        self.addr = addr
        self.admin = kafka.KafkaAdminClient(bootstrap_servers=addr)

    def create(self, topic, partitions):
        self.admin.create_topics([admin.NewTopic(topic, partitions, 1)])

    def remove(self, topic):
        self.admin.delete_topics([topic])

    def list(self):
        return self.admin.list_topics()

    def offset_for_time(self, topic, ms):
        consumer = kafka.KafkaConsumer(bootstrap_servers=self.addr)
        partition = kafka.TopicPartition(topic, 0)
        found = consumer.offsets_for_times({partition: ms})[partition]
        consumer.close()
        return found.offset if found else -1

    def producer(self, r):
        return Producer(self.addr, r)

    def consumer(self, r):
        return Consumer(self.addr, r)

    def copy(self, r):
        producer = kafka.KafkaProducer(bootstrap_servers=self.addr, transactional_id=r["transactional"])
        producer.init_transactions()
        consumer = Consumer(self.addr, r | {"topics": [r["from"]], "committed": True}).c
        left = r["count"]
        while left > 0:
            records = sum(consumer.poll(1000, max_records=min(left, 4)).values(), [])
            if not records:
                continue
            producer.begin_transaction()
            for m in records:
                producer.send(r["topic"], m.value)
            offsets = {p: kafka.OffsetAndMetadata(consumer.position(p), "", -1) for p in consumer.assignment()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
            left -= len(records)
        consumer.close()
        producer.close()


class Producer:
    def __init__(self, addr, r):
        codec = r.get("codec", "none")
        config = {"compression_type": None if codec == "none" else codec, "acks": "all", "linger_ms": 10,
                  "enable_idempotence": bool(r.get("idempotent") or r.get("transactional"))}
        if r.get("transactional"):
            config["transactional_id"] = r["transactional"]
        self.p = kafka.KafkaProducer(bootstrap_servers=addr, **config)
        if r.get("transactional"):
            self.p.init_transactions()

    def produce(self, topic, partition, values, times):
        sent = [self.p.send(topic, v, partition=partition, timestamp_ms=t) for v, t in zip(values, times)]
        for future in sent:
            future.get(PATIENCE)

    def begin(self):
        self.p.begin_transaction()

    def end(self, commit):
        if commit:
            self.p.commit_transaction()
        else:
            self.p.abort_transaction()

    def close(self):
        self.p.close(10)


class Consumer:
    def __init__(self, addr, r):
        config = {"group_id": r["group"], "auto_offset_reset": "earliest", "enable_auto_commit": False,
                  "isolation_level": "read_committed" if r.get("committed") else "read_uncommitted",
                  "heartbeat_interval_ms": 300, "fetch_max_wait_ms": 100,
                  "metadata_max_age_ms": 1000}  # a member that joins before it knows its topics has none until then
        if r.get("assignor"):
            config["partition_assignment_strategy"] = [ASSIGNORS[r["assignor"]]]
        if r.get("instance"):
            config["group_instance_id"] = r["instance"]
        self.c = kafka.KafkaConsumer(bootstrap_servers=addr, **config)
        if r.get("pattern"):
            self.c.subscribe(pattern=r["pattern"])
        else:
            self.c.subscribe(r["topics"])

    def poll(self):
        found = self.c.poll(POLL_WAIT * 1000)
        records = [seen(m.topic, m.partition, m.offset, m.value) for part in found.values() for m in part]
        return records, [f"{p.topic}-{p.partition}" for p in self.c.assignment()]

    def commit(self, topic, offset):
        if not topic:
            return self.c.commit()
        return self.c.commit({kafka.TopicPartition(topic, 0): kafka.OffsetAndMetadata(offset, "", -1)})

    def close(self):
        self.c.close(autocommit=False)
