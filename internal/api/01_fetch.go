package api

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"tidemark/internal/auth"
	"tidemark/internal/commitlog"
	"tidemark/internal/metadata"
	"tidemark/internal/protocol"
	"tidemark/internal/replica"
)

// Fetch (1).
//
// v1: throttle time. v2: magic 1. v3: max bytes. v4: magic 2, isolation level (KIP-98). v5: log start offset.
// v7: sessions (KIP-227). v9: leader epoch (KIP-320). v10: zstd. v11: rack, preferred replica (KIP-392).
// v12: flexible, last fetched epoch (KIP-595). v13: topic ids (KIP-516). v15: replica state (KIP-903).
// v16: current leader (KIP-951). v17: directory id (KIP-853). v18: high watermark of the replica (KIP-1166).
// Kafka 4 serves from v4 on; v0 to v3 are converted to the old message formats here.

// firstBatchFetchVersion is the first Fetch version that carries record batches (magic 2).
const firstBatchFetchVersion = 4

// wanted is one partition of a fetch.
type wanted struct {
	topic     string
	topicID   metadata.UUID
	in        protocol.FetchPartition
	partition *replica.Partition
	err       error             // why there is no partition
	cached    *sessionPartition // what the session remembers of it; nil: no session
	sizeBytes int               // of records in the answer
}

// fetching is one fetch request on its way to an answer.
type fetching struct {
	c       *call
	request protocol.FetchRequest
	session sessionContext
	wanted  []*wanted
	slices  []commitlog.Slice
}

func (a *API) fetch(c *call) {
	f := &fetching{c: c}
	if err := f.request.Parse(c.version(), c.request.Body, c.request.Conn.Names()); err != nil {
		a.malformed(c, err)
		return
	}
	c.request.ReleaseBody()
	if n := a.sessions.begin(f); n != none {
		response := &protocol.FetchResponse{ErrorCode: n, SessionID: 0}
		c.reply(protocol.Response{Body: response.Encode(c.version())})
		return
	}
	for _, w := range f.wanted {
		w.partition, w.err = a.fetchable(c, w)
	}
	response, bytes, immediate := a.readAll(f)
	wait := time.Duration(f.request.MaxWaitMs) * time.Millisecond
	if immediate || wait <= 0 || len(f.wanted) == 0 || bytes >= int(f.request.MinBytes) {
		a.answerFetch(f, response)
		return
	}
	f.releaseSlices()
	a.parkFetch(f, wait)
}

func (a *API) fetchable(c *call, w *wanted) (*replica.Partition, error) {
	p, err := a.partitionOf(w.topic, w.topicID, w.in.Index)
	if err != nil {
		return nil, err
	}
	if !a.allowed(c, auth.Read, auth.Topic(p.Topic)) {
		return nil, kerr.TopicAuthorizationFailed
	}
	return p, nil
}

// readAll reads every partition within the limits of the request. immediate says that the answer must not wait: a
// partition has an error or diverges.
func (a *API) readAll(f *fetching) (response []protocol.FetchPartitionResponse, bytes int, immediate bool) {
	left := int(f.request.MaxBytes)
	if f.request.ReplicaID < 0 {
		left = min(left, int(a.Node().Broker().FetchMaxBytes))
	}
	minOne := f.c.version() >= 3
	response = make([]protocol.FetchPartitionResponse, len(f.wanted))
	for i, w := range f.wanted {
		answer, err := a.readPartition(f, w, left, minOne)
		if err != nil {
			answer = protocol.FetchError(w.in.Index, a.fetchFailed(f.c, err))
		}
		immediate = immediate || err != nil || answer.DivergingEpoch != nil
		if w.sizeBytes > 0 {
			minOne = false
			left = max(0, left-w.sizeBytes)
			bytes += w.sizeBytes
		}
		response[i] = answer
	}
	return response, bytes, immediate
}

// fetchFailed is the code of a fetch's error: KAFKA_STORAGE_ERROR came with v6.
func (a *API) fetchFailed(c *call, err error) int16 {
	n := a.failed(c, err)
	if n == kerr.KafkaStorageError.Code && c.version() < 6 {
		return kerr.NotLeaderForPartition.Code
	}
	return n
}

func (a *API) readPartition(f *fetching, w *wanted, left int, minOne bool) (protocol.FetchPartitionResponse, error) {
	w.sizeBytes = 0
	if w.err != nil {
		return protocol.FetchPartitionResponse{}, w.err
	}
	result, err := w.partition.Read(replica.ReadRequest{Offset: w.in.FetchOffset,
		LeaderEpoch: w.in.CurrentLeaderEpoch, LastFetchedEpoch: w.in.LastFetchedEpoch,
		MaxBytes: min(int(w.in.MaxBytes), left), MinOneBatch: minOne,
		Isolation: commitlog.Isolation(f.request.IsolationLevel), Replica: f.request.ReplicaID})
	if err != nil {
		return protocol.FetchPartitionResponse{}, err
	}
	answer := protocol.FetchPartitionResponse{Index: w.in.Index, HighWatermark: result.HighWatermark,
		LastStableOffset: result.LastStableOffset, LogStartOffset: result.LogStartOffset, PreferredReadReplica: -1}
	if result.Diverging != nil {
		answer.DivergingEpoch = &protocol.EpochEnd{Epoch: result.Diverging.Epoch,
			EndOffset: result.Diverging.EndOffset}
		return answer, nil
	}
	f.slices = append(f.slices, result.Slice)
	if err := fillRecords(&answer, w, result.Slice, f.c.version()); err != nil {
		return protocol.FetchPartitionResponse{}, err
	}
	if f.request.IsolationLevel == int8(commitlog.ReadCommitted) {
		answer.AbortedTransactions = abortedList(result.Slice)
	}
	return answer, nil
}

// fillRecords puts the bytes read into the answer, as they are on disk, or converted for clients before v4.
func fillRecords(answer *protocol.FetchPartitionResponse, w *wanted, s commitlog.Slice, version int16) error {
	switch {
	case s.SizeBytes == 0 || (s.FirstBatchCut && version >= 3):
		return nil
	case version < firstBatchFetchVersion:
		old, err := downConvert(s, w.in.FetchOffset, version)
		if err != nil {
			return err
		}
		answer.Records, w.sizeBytes = protocol.BytesPart(old), len(old)
	default:
		answer.Records, w.sizeBytes = protocol.FilePart(s.File, s.Pos, int64(s.SizeBytes)), s.SizeBytes
	}
	return nil
}

func abortedList(s commitlog.Slice) []protocol.AbortedTransaction {
	out := make([]protocol.AbortedTransaction, 0, len(s.AbortedTxns))
	for _, t := range s.AbortedTxns {
		out = append(out, protocol.AbortedTransaction{ProducerID: t.ProducerID, FirstOffset: t.FirstOffset})
	}
	return out
}

// parkFetch waits until enough can be read, something goes wrong, or the time is over, and reads again then.
func (a *API) parkFetch(f *fetching, wait time.Duration) {
	partitions := make([]*replica.Partition, 0, len(f.wanted))
	for _, w := range f.wanted {
		partitions = append(partitions, w.partition)
	}
	a.Replicas.Park(f.c.ctx, partitions, wait, f.ready, func(bool) {
		response, _, _ := a.readAll(f)
		a.answerFetch(f, response)
	})
}

// ready tells whether a parked fetch has enough to read.
func (f *fetching) ready() bool {
	var bytes int64
	for _, w := range f.wanted {
		n, err := w.partition.Readable(replica.ReadRequest{Offset: w.in.FetchOffset,
			LeaderEpoch: w.in.CurrentLeaderEpoch, LastFetchedEpoch: w.in.LastFetchedEpoch,
			MaxBytes:  int(w.in.MaxBytes),
			Isolation: commitlog.Isolation(f.request.IsolationLevel), Replica: f.request.ReplicaID},
			f.request.MinBytes > 1)
		if err != nil {
			return true
		}
		bytes += n
	}
	return bytes >= int64(f.request.MinBytes)
}

// answerFetch sends what was read; the file ranges are held until the last byte was written.
func (a *API) answerFetch(f *fetching, read []protocol.FetchPartitionResponse) {
	response := f.session.respond(f, read)
	f.c.reply(protocol.Response{Body: response.Encode(f.c.version()), Release: f.releaseSlices})
}

func (f *fetching) releaseSlices() {
	for i := range f.slices {
		f.slices[i].Release()
	}
	f.slices = f.slices[:0]
}
