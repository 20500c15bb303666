// Drives KafkaJS for the client matrix: carries out requests, one JSON object a line on standard input, and answers
// each with one line on standard output. The argument is the broker. Modules come from the directory in MODULES.
'use strict';

const path = require('node:path');
const readline = require('node:readline');
const load = (name) => require(path.join(process.env.MODULES, 'node_modules', name));
const kafkajs = load('kafkajs');
const lz4 = load('lz4-napi');
const zstd = load('@mongodb-js/zstd');

const { CompressionCodecs, CompressionTypes } = kafkajs;
CompressionCodecs[CompressionTypes.Snappy] = load('kafkajs-snappy');
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: (encoder) => lz4.compressFrame(encoder.buffer),
  decompress: (buffer) => lz4.decompressFrame(buffer),
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) => zstd.compress(encoder.buffer),
  decompress: (buffer) => zstd.decompress(buffer),
});
const codecs = {
  none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD,
};

const pollWait = 300; // milliseconds that a poll waits

const kafka = new kafkajs.Kafka({
  brokers: [process.argv[2]],
  retry: { retries: 50, maxRetryTime: 2000 },
  logCreator: () => ({ namespace, level, log }) => {
    if (level <= kafkajs.logLevel.WARN) {
      process.stderr.write(`${namespace} ${JSON.stringify(log)}\n`);
    }
  },
});
const admin = kafka.admin();
const connected = admin.connect();

/** A producer of KafkaJS, and its open transaction. */
class Producer {
  constructor(r) {
    this.codec = codecs[r.codec || 'none'];
    this.p = kafka.producer({
      idempotent: Boolean(r.idempotent || r.transactional),
      ...(r.transactional && { transactionalId: r.transactional, maxInFlightRequests: 1 }),
    });
  }

  async open(r) {
    await this.p.connect();
    return this;
  }

  async produce(r) {
    const messages = r.values.map((value, i) => ({
      value, partition: r.partition, ...(r.times && { timestamp: String(r.times[i]) }),
    }));
    await (this.transaction || this.p).send({ topic: r.topic, messages, compression: this.codec });
  }

  async begin() {
    this.transaction = await this.p.transaction();
  }

  async end(r) {
    const transaction = this.transaction;
    this.transaction = undefined;
    await (r.commit ? transaction.commit() : transaction.abort());
  }

  close() {
    return this.p.disconnect();
  }
}

/** A consumer of KafkaJS, whose records wait in a list until they are polled. */
class Consumer {
  constructor(r) {
    this.records = [];
    this.assigned = [];
    this.next = new Map();
    this.c = kafka.consumer({
      groupId: r.group, readUncommitted: !r.committed, heartbeatInterval: 300, sessionTimeout: 10000,
      maxWaitTimeInMs: 100, retry: { retries: 50, maxRetryTime: 2000 },
    });
    this.c.on(this.c.events.GROUP_JOIN, ({ payload }) => {
      this.assigned = Object.entries(payload.memberAssignment).flatMap(
        ([topic, partitions]) => partitions.map((p) => `${topic}-${p}`));
    });
    this.c.on(this.c.events.REBALANCING, () => { this.assigned = []; });
  }

  async open(r) {
    await this.c.connect();
    const topics = r.pattern ? [new RegExp(r.pattern)] : r.topics;
    await this.c.subscribe({ topics, fromBeginning: true });
    await this.c.run({
      autoCommit: false,
      eachMessage: async ({ topic, partition, message }) => {
        const offset = Number(message.offset);
        this.records.push({ topic, partition, offset, value: message.value.toString() });
        this.next.set(`${topic} ${partition}`, { topic, partition, offset: String(offset + 1) });
      },
    });
    return this;
  }

  async poll() {
    for (let waited = 0; waited < pollWait && this.records.length === 0; waited += 20) {
      await new Promise((done) => { setTimeout(done, 20); });
    }
    return { records: this.records.splice(0), assigned: [...this.assigned].sort() };
  }

  async commit(r) {
    const one = { topic: r.topic, partition: 0, offset: String(r.offset) };
    await this.c.commitOffsets(r.topic ? [one] : [...this.next.values()]);
  }

  close() {
    return this.c.disconnect();
  }
}

/** Consumes, produces and commits offsets in transactions, until as many records are copied. */
async function copy(r) {
  const producer = kafka.producer({ transactionalId: r.transactional, idempotent: true, maxInFlightRequests: 1 });
  const consumer = kafka.consumer({ groupId: r.group, readUncommitted: false, maxWaitTimeInMs: 100 });
  await producer.connect();
  await consumer.connect();
  await consumer.subscribe({ topics: [r.from], fromBeginning: true });
  let left = r.count;
  await new Promise((done, failed) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => failed(payload.error));
    consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: async ({ batch, resolveOffset }) => {
        for (let i = 0; i < batch.messages.length && left > 0;) {
          const messages = batch.messages.slice(i, i + Math.min(left, 4));
          const transaction = await producer.transaction();
          await transaction.send({ topic: r.topic, messages: messages.map(({ value }) => ({ value })) });
          const last = messages[messages.length - 1].offset;
          const next = String(Number(last) + 1);
          await transaction.sendOffsets({
            consumerGroupId: r.group,
            topics: [{ topic: r.from, partitions: [{ partition: batch.partition, offset: next }] }],
          });
          await transaction.commit();
          resolveOffset(last);
          i += messages.length;
          left -= messages.length;
        }
        if (left === 0) {
          done();
        }
      },
    }).catch(failed);
  });
  await consumer.disconnect();
  await producer.disconnect();
}

const opened = new Map();

async function act(r) {
  switch (r.do) {
    case 'version':
      return { version: load('kafkajs/package.json').version };
    case 'create': {
      const topics = [{ topic: r.topic, numPartitions: r.partitions, replicationFactor: 1 }];
      if (!await admin.createTopics({ topics, waitForLeaders: false })) {
        throw new Error('the topic exists');
      }
      return {};
    }
    case 'delete':
      await admin.deleteTopics({ topics: [r.topic] });
      return {};
    case 'list':
      return { topics: await admin.listTopics() };
    case 'time': {
      const [found] = await admin.fetchTopicOffsetsByTimestamp(r.topic, r.time || 0);
      return { offset: Number(found.offset) };
    }
    case 'producer':
      opened.set(r.id, await new Producer(r).open(r));
      return {};
    case 'consumer':
      opened.set(r.id, await new Consumer(r).open(r));
      return {};
    case 'copy':
      await copy(r);
      return {};
    default: {
      const answer = await opened.get(r.id)[r.do](r);
      if (r.do === 'close') {
        opened.delete(r.id);
      }
      return r.do === 'poll' ? answer : {};
    }
  }
}

async function main() {
  await connected;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer;
    try {
      answer = await act(JSON.parse(line));
    } catch (e) {
      process.stderr.write(`${e.stack}\n`);
      answer = { error: String(e) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
}

main();
