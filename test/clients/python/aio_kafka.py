"""aiokafka, on an event loop of its own thread."""
import asyncio
import threading

import aiokafka
from aiokafka import admin
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from driver import PATIENCE, POLL_WAIT, seen

ASSIGNORS = {
    "range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor, "sticky": StickyPartitionAssignor}

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def run(coroutine):
    """Waits for what runs on the loop."""
    return asyncio.run_coroutine_threadsafe(coroutine, loop).result(PATIENCE)


async def started(make):
    """A client that is made and started on the loop."""
    one = make()
    await one.start()
    return one


class Library:
    version = aiokafka.__version__

    def __init__(self, addr):
        self.addr = addr
        self.admin = run(started(lambda: admin.AIOKafkaAdminClient(bootstrap_servers=addr)))

    def create(self, topic, partitions):
        answer = run(self.admin.create_topics([admin.NewTopic(topic, partitions, 1)]))
        self.check(answer.topic_errors)

    def remove(self, topic):
        answer = run(self.admin.delete_topics([topic]))
        self.check(answer.topic_error_codes)

    @staticmethod
    def check(errors):
        """Admin calls answer errors as codes."""
        for e in errors:
            if e[1] != 0:
                raise aiokafka.errors.for_code(e[1])(*e[2:])

    def list(self):
        return run(self.admin.list_topics())

    def offset_for_time(self, topic, ms):
        consumer = run(started(lambda: aiokafka.AIOKafkaConsumer(bootstrap_servers=self.addr)))
        partition = aiokafka.TopicPartition(topic, 0)
        found = run(consumer.offsets_for_times({partition: ms}))[partition]
        run(consumer.stop())
        return found.offset if found else -1

    def producer(self, r):
        return Producer(self.addr, r)

    def consumer(self, r):
        return Consumer(self.addr, r)

    def copy(self, r):
        run(self.copying(r))

    async def copying(self, r):
        """Copies in transactions."""
        producer = await started(lambda: aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.addr, transactional_id=r["transactional"]))
        consumer = await started(lambda: aiokafka.AIOKafkaConsumer(
            r["from"], bootstrap_servers=self.addr, group_id=r["group"], enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed"))
        left = r["count"]
        while left > 0:
            found = await consumer.getmany(timeout_ms=1000, max_records=min(left, 4))
            if not found:
                continue
            async with producer.transaction():
                for part in found.values():
                    for m in part:
                        await producer.send_and_wait(r["topic"], m.value)
                        left -= 1
                offsets = {p: part[-1].offset + 1 for p, part in found.items()}
                await producer.send_offsets_to_transaction(offsets, r["group"])
        await consumer.stop()
        await producer.stop()


class Producer:
    def __init__(self, addr, r):
        codec = r.get("codec", "none")
        config = {"compression_type": None if codec == "none" else codec, "linger_ms": 10, "acks": "all",
                  "enable_idempotence": bool(r.get("idempotent") or r.get("transactional"))}
        if r.get("transactional"):
            config["transactional_id"] = r["transactional"]
        self.p = run(started(lambda: aiokafka.AIOKafkaProducer(bootstrap_servers=addr, **config)))

    async def producing(self, topic, partition, values, times):
        """Sends all, then waits for all."""
        sent = [await self.p.send(topic, v, partition=partition, timestamp_ms=t) for v, t in zip(values, times)]
        await asyncio.gather(*sent)

    def produce(self, topic, partition, values, times):
        run(self.producing(topic, partition, values, times))

    def begin(self):
        run(self.p.begin_transaction())

    def end(self, commit):
        run(self.p.commit_transaction() if commit else self.p.abort_transaction())

    def close(self):
        run(self.p.stop())


class Consumer:
    def __init__(self, addr, r):
        config = {"group_id": r["group"], "auto_offset_reset": "earliest", "enable_auto_commit": False,
                  "isolation_level": "read_committed" if r.get("committed") else "read_uncommitted",
                  "heartbeat_interval_ms": 300, "fetch_max_wait_ms": 100}
        if r.get("assignor"):
            config["partition_assignment_strategy"] = [ASSIGNORS[r["assignor"]]]
        if r.get("instance"):
            config["group_instance_id"] = r["instance"]
        subscription = {"pattern": r["pattern"]} if r.get("pattern") else {"topics": r["topics"]}

        def make():
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=addr, **config)
            consumer.subscribe(**subscription)
            return consumer

        self.starting = asyncio.run_coroutine_threadsafe(started(make), loop)  # it waits for the group

    @property
    def c(self):
        """The consumer, once it has started."""
        return self.starting.result(PATIENCE)

    def poll(self):
        if not self.starting.done():
            return [], []
        found = run(self.c.getmany(timeout_ms=int(POLL_WAIT * 1000)))
        records = [seen(m.topic, m.partition, m.offset, m.value) for part in found.values() for m in part]
        return records, [f"{p.topic}-{p.partition}" for p in self.c.assignment()]

    def commit(self, topic, offset):
        run(self.c.commit({aiokafka.TopicPartition(topic, 0): offset} if topic else None))

    def close(self):
        run(self.c.stop())
