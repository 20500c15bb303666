"""Transactions with librdkafka: argument 1 is the broker. Prints FENCED when the first producer is told so."""
import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

addr = sys.argv[1]


def producer():
    p = Producer({"bootstrap.servers": addr, "transactional.id": "librdkafka", "linger.ms": 0})
    p.init_transactions(30)
    return p


group = Consumer({"bootstrap.servers": addr, "group.id": "g"}).consumer_group_metadata()
first = producer()
for commit, offset, values in ((True, 7, "ab"), (False, 9, "x")):
    first.begin_transaction()
    for value in values:
        first.produce("t", value)
    first.flush(30)
    first.send_offsets_to_transaction([TopicPartition("t", 0, offset)], group, 30)
    first.commit_transaction(30) if commit else first.abort_transaction(30)
first.begin_transaction()
first.produce("t", "y")
first.flush(30)
second = producer()
try:
    first.commit_transaction(30)
except KafkaException as e:
    if e.args[0].fatal():
        print("FENCED", e)
for value in ("c", "end"):
    second.begin_transaction()
    second.produce("t", value)
    second.commit_transaction(30)
