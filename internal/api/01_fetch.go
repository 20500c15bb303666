package api

import (
	"errors"
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

// The first Fetch versions with a rule of their own.
const (
	boundedFetch = 3  // a batch larger than the limits comes whole, if it is the first
	batchFetch   = 4  // record batches (magic 2)
	storageFetch = 6  // KAFKA_STORAGE_ERROR
	sessionFetch = 7  // sessions
	zstdFetch    = 10 // the client knows zstd
	idFetch      = 13 // topics by id, errors of the whole request without partitions
	leaderFetch  = 16 // the current leader with an error that tells of an old one
)

// wanted is one partition of a fetch.
type wanted struct {
	topic     string
	topicID   metadata.UUID
	in        protocol.FetchPartition
	partition *replica.Partition
	err       error             // why there is no partition
	unread    bool              // not to be read: the metadata has no such partition, or the caller may not read it
	cached    *sessionPartition // what the session remembers of it; nil: no session
	sizeBytes int               // of records in the answer
}

// fetching is one fetch request on its way to an answer.
type fetching struct {
	c       *call
	request protocol.FetchRequest
	session sessionContext
	wanted  []wanted
	slices  []commitlog.Slice
	// endpoints are where the leaders are that answers name.
	endpoints []protocol.NodeEndpoint
}

func (a *API) fetch(c *call) {
	f := &fetching{c: c}
	if err := f.request.Parse(c.version(), c.request.Body, c.request.Conn.Names()); err != nil {
		a.malformed(c, err)
		return
	}
	c.request.ReleaseBody()
	if a.sessions.enter(f) {
		a.startFetch(f)
	}
}

// startFetch reads what there is, and answers or waits.
func (a *API) startFetch(f *fetching) {
	if n := a.sessions.begin(f); n != none {
		f.c.reply(protocol.Response{Body: (&protocol.FetchResponse{ErrorCode: n}).Encode(f.c.version())})
		a.nextFetch(f)
		return
	}
	if !a.findPartitions(f) {
		a.answerFetch(f, a.unreadAnswers(f))
		return
	}
	if f.request.IsolationLevel < 0 || f.request.IsolationLevel > int8(commitlog.ReadCommitted) {
		a.refuseFetch(f, kerr.UnknownServerError.Code)
		return
	}
	limit := min(f.request.MaxBytes, a.Node().Broker().FetchMaxBytes)
	f.request.MaxBytes, f.request.MinBytes = limit, min(f.request.MinBytes, limit)
	response, bytes, immediate := a.readAll(f)
	wait := time.Duration(f.request.MaxWaitMs) * time.Millisecond
	if immediate || wait <= 0 || bytes >= int(f.request.MinBytes) {
		a.answerFetch(f, response)
		return
	}
	f.releaseSlices()
	a.parkFetch(f, wait)
}

// findPartitions finds what is to be read, and puts what cannot be read behind it, where Kafka answers it. It tells
// whether anything is to be read.
func (a *API) findPartitions(f *fetching) bool {
	var unread []wanted
	read := f.wanted[:0]
	for i := range f.wanted {
		w := f.wanted[i]
		if a.findPartition(f.c, &w); w.unread {
			unread = append(unread, w)
		} else {
			read = append(read, w)
		}
	}
	f.wanted = append(read, unread...)
	return len(read) > 0
}

func (a *API) findPartition(c *call, w *wanted) {
	w.partition, w.err = nil, nil
	switch {
	case c.version() < idFetch:
		w.partition, w.err = a.partitionByName(w.topic, w.in.Index)
	case w.cached != nil && w.cached.name != "":
		w.partition, w.err = a.sessionPartition(w)
	default:
		w.partition, w.err = a.partitionByID(w.topicID, w.in.Index)
	}
	w.unread = w.err != nil && !errors.Is(w.err, replica.ErrNotLeader) && code(w.err) != kerr.InconsistentTopicID.Code
	if w.err == nil {
		if w.cached != nil {
			w.cached.name = w.partition.Topic
		}
		if !a.allowed(c, auth.Read, auth.Topic(w.partition.Topic)) {
			w.err, w.unread = kerr.TopicAuthorizationFailed, true
		}
	}
}

// sessionPartition finds a partition of a session whose topic was there once: what becomes of it later is told by
// the name.
func (a *API) sessionPartition(w *wanted) (*replica.Partition, error) {
	p, err := a.partitionByName(w.cached.name, w.in.Index)
	if err == nil && p.TopicID != w.topicID {
		return nil, kerr.InconsistentTopicID
	}
	return p, err
}

// readAll reads every partition within the limits of the request. immediate says that the answer must not wait: a
// partition failed or diverges.
func (a *API) readAll(f *fetching) (response []protocol.FetchPartitionResponse, bytes int, immediate bool) {
	left := int(f.request.MaxBytes)
	minOne := f.c.version() >= boundedFetch
	f.endpoints = nil
	response = make([]protocol.FetchPartitionResponse, len(f.wanted))
	for i := range f.wanted {
		w := &f.wanted[i]
		if w.unread {
			response[i] = a.unreadAnswer(f, w)
			continue
		}
		answer, err := a.readPartition(f, w, left, minOne)
		if err != nil {
			answer = a.failedAnswer(f, w, err)
		}
		immediate = immediate || err != nil || answer.DivergingEpoch != nil
		if w.sizeBytes > 0 {
			minOne = false
			bytes += w.sizeBytes
		}
		left = max(0, left-w.sizeBytes)
		response[i] = answer
	}
	return response, bytes, immediate
}

// failedAnswer is the answer for a partition that could not be read. KAFKA_STORAGE_ERROR came with v6.
func (a *API) failedAnswer(f *fetching, w *wanted, err error) protocol.FetchPartitionResponse {
	n := a.failed(f.c, err)
	if n == kerr.KafkaStorageError.Code && f.c.version() < storageFetch {
		n = kerr.NotLeaderForPartition.Code
	}
	out := protocol.FetchError(w.in.Index, n)
	if f.c.version() >= leaderFetch && (n == kerr.NotLeaderForPartition.Code || n == kerr.FencedLeaderEpoch.Code) {
		out.CurrentLeader = a.currentLeader(w.topic, w.topicID, w.in.Index)
		f.endpoints = a.addEndpoint(f.c, f.endpoints, out.CurrentLeader.LeaderID)
	}
	return out
}

// unreadAnswer is the answer for a partition that is not read. It differs from others in its empty list of aborted
// transactions, which is null there.
func (a *API) unreadAnswer(f *fetching, w *wanted) protocol.FetchPartitionResponse {
	out := protocol.FetchError(w.in.Index, a.failed(f.c, w.err))
	out.AbortedTransactions = []protocol.AbortedTransaction{}
	return out
}

func (a *API) unreadAnswers(f *fetching) []protocol.FetchPartitionResponse {
	out := make([]protocol.FetchPartitionResponse, len(f.wanted))
	for i := range f.wanted {
		out[i] = a.unreadAnswer(f, &f.wanted[i])
	}
	return out
}

// refuseFetch refuses the whole request; before v13 with every partition of it.
func (a *API) refuseFetch(f *fetching, errorCode int16) {
	response := &protocol.FetchResponse{ErrorCode: errorCode, SessionID: f.request.SessionID}
	if f.c.version() < idFetch {
		for _, t := range f.request.Topics {
			out := protocol.FetchTopicResponse{Name: t.Name}
			for _, p := range t.Partitions {
				one := protocol.FetchError(p.Index, errorCode)
				one.AbortedTransactions = []protocol.AbortedTransaction{}
				out.Partitions = append(out.Partitions, one)
			}
			response.Topics = append(response.Topics, out)
		}
	}
	f.c.reply(protocol.Response{Body: response.Encode(f.c.version())})
	a.nextFetch(f)
}

// readRequest is what to read of a partition.
func (f *fetching) readRequest(w *wanted) replica.ReadRequest {
	return replica.ReadRequest{Offset: w.in.FetchOffset, LeaderEpoch: w.in.CurrentLeaderEpoch,
		LastFetchedEpoch: w.in.LastFetchedEpoch, MaxBytes: int(w.in.MaxBytes),
		Isolation: commitlog.Isolation(f.request.IsolationLevel), Replica: f.request.ReplicaID}
}

func (a *API) readPartition(f *fetching, w *wanted, left int, minOne bool) (protocol.FetchPartitionResponse, error) {
	w.sizeBytes = 0
	if w.err != nil {
		return protocol.FetchPartitionResponse{}, w.err
	}
	limit := min(int(w.in.MaxBytes), left)
	r := f.readRequest(w)
	r.MaxBytes, r.MinOneBatch = max(0, limit), minOne || limit < 0
	result, err := w.partition.Read(r)
	if err != nil {
		return protocol.FetchPartitionResponse{}, err
	}
	f.slices = append(f.slices, result.Slice)
	if limit < 0 && result.Slice.SizeBytes > 0 {
		return protocol.FetchPartitionResponse{}, kerr.UnknownServerError // there is something, and a negative limit
	}
	answer := protocol.FetchPartitionResponse{Index: w.in.Index, HighWatermark: result.HighWatermark,
		LastStableOffset: result.LastStableOffset, LogStartOffset: result.LogStartOffset, PreferredReadReplica: -1}
	if result.Diverging != nil {
		answer.DivergingEpoch = &protocol.EpochEnd{Epoch: result.Diverging.Epoch,
			EndOffset: result.Diverging.EndOffset}
		return answer, nil
	}
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
	case s.SizeBytes == 0 || (s.FirstBatchCut && version >= boundedFetch):
		return nil
	case version < batchFetch:
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
	for i := range f.wanted {
		if !f.wanted[i].unread {
			partitions = append(partitions, f.wanted[i].partition)
		}
	}
	a.Replicas.Park(f.c.ctx, partitions, wait, f.ready, func(bool) {
		response, _, _ := a.readAll(f)
		a.answerFetch(f, response)
	})
}

// ready tells whether a parked fetch has enough to read.
func (f *fetching) ready() bool {
	var bytes int64
	for i := range f.wanted {
		w := &f.wanted[i]
		if w.unread {
			continue
		}
		n, err := w.partition.Readable(f.readRequest(w), f.request.MinBytes > 1)
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
	response.NodeEndpoints = f.endpoints
	f.c.reply(protocol.Response{Body: response.Encode(f.c.version()), Release: f.releaseSlices})
	a.nextFetch(f)
}

func (f *fetching) releaseSlices() {
	for i := range f.slices {
		f.slices[i].Release()
	}
	f.slices = f.slices[:0]
}
