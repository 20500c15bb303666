package golden

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Record is one line of records.tsv or records-committed.tsv. A length of −1 means null.
// Hashes are the first 16 hex digits of SHA-256, "-" where there is nothing to hash.
type Record struct {
	Offset, Timestamp int64
	TimestampType     string // CreateTime, LogAppendTime or NoTimestampType
	KeyLen, ValueLen  int
	KeyHash           string
	ValueHash         string
	Headers           int
	HeadersHash       string
	LeaderEpoch       int32 // −1 = none
}

// Records returns what a read_uncommitted consumer read from the start.
// stopped is the error at which the consumer ended early, empty when it reached the end.
func (c Case) Records(t testing.TB) (records []Record, stopped string) {
	t.Helper()
	return c.records(t, "records.tsv")
}

// CommittedRecords is Records for a read_committed consumer.
func (c Case) CommittedRecords(t testing.TB) (records []Record, stopped string) {
	t.Helper()
	if strings.HasPrefix(c.Info.Committed, "same as") {
		return c.records(t, "records.tsv")
	}
	return c.records(t, "records-committed.tsv")
}

func (c Case) records(t testing.TB, name string) ([]Record, string) {
	t.Helper()
	tab := c.table(t, name)
	var out []Record
	for _, row := range tab.rows {
		r := Record{
			Offset:        tab.num(row, "offset"),
			Timestamp:     tab.num(row, "timestamp"),
			TimestampType: tab.str(row, "tstype"),
			KeyLen:        int(tab.num(row, "key_len")),
			KeyHash:       tab.str(row, "key_sha256_16"),
			ValueLen:      int(tab.num(row, "value_len")),
			ValueHash:     tab.str(row, "value_sha256_16"),
			Headers:       int(tab.num(row, "headers")),
			HeadersHash:   tab.str(row, "headers_sha256_16"),
			LeaderEpoch:   -1,
		}
		if epoch, ok := tab.opt(row, "leader_epoch"); ok {
			r.LeaderEpoch = int32(epoch)
		}
		out = append(out, r)
	}
	return out, tab.comment
}

// ListOffset is one ListOffsets query and its answer. Isolation is 0 (uncommitted) or 1 (committed).
type ListOffset struct {
	Topic       string // 13 only, the case's own topic elsewhere
	Partition   int32
	Query       int64
	Isolation   int8
	Version     int16
	Error       string // name of Kafka's error, "NONE" when none
	Offset      int64
	Timestamp   int64
	LeaderEpoch int32
}

// ListOffsets returns the time look-ups of the case, in file order.
func (c Case) ListOffsets(t testing.TB) []ListOffset {
	t.Helper()
	tab := c.table(t, "list-offsets.tsv")
	_, many := tab.columns["topic"]
	var out []ListOffset
	for _, row := range tab.rows {
		q := ListOffset{
			Topic:       c.Info.Topic,
			Partition:   c.Info.Partition,
			Query:       tab.num(row, "query_timestamp"),
			Isolation:   int8(tab.num(row, "isolation")),
			Version:     int16(tab.num(row, "version")),
			Error:       tab.str(row, "error"),
			Offset:      tab.num(row, "offset"),
			Timestamp:   tab.num(row, "timestamp"),
			LeaderEpoch: int32(tab.num(row, "leader_epoch")),
		}
		if many {
			q.Topic, q.Partition = tab.str(row, "topic"), int32(tab.num(row, "partition"))
		}
		out = append(out, q)
	}
	return out
}

// Aborted is one aborted transaction of a fetch answer.
type Aborted struct{ ProducerID, FirstOffset int64 }

// Fetch is one Fetch of one partition and its answer.
type Fetch struct {
	StartOffset      int64
	MaxBytes         int32
	Isolation        int8
	Version          int16
	Error            string
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	Bytes            int
	Batches          int
	FirstBaseOffset  int64 // −1 when no whole batch came back
	LastOffset       int64 // of the last whole batch; −1 when none
	PartialTailBytes int   // bytes after the last whole batch
	Aborted          []Aborted
	AbortedNull      bool   // the list was null, not empty
	Hash             string // first 16 hex digits of SHA-256 over the record bytes, "-" when there are none
}

// Fetches returns the fetches of the case, in file order.
func (c Case) Fetches(t testing.TB) []Fetch {
	t.Helper()
	tab := c.table(t, "fetch.tsv")
	var out []Fetch
	for _, row := range tab.rows {
		f := Fetch{
			StartOffset:      tab.num(row, "start_offset"),
			MaxBytes:         int32(tab.num(row, "max_bytes")),
			Isolation:        int8(tab.num(row, "isolation")),
			Version:          int16(tab.num(row, "version")),
			Error:            tab.str(row, "error"),
			HighWatermark:    tab.num(row, "high_watermark"),
			LastStableOffset: tab.num(row, "last_stable_offset"),
			LogStartOffset:   tab.num(row, "log_start_offset"),
			Bytes:            int(tab.num(row, "bytes")),
			Batches:          int(tab.num(row, "batches")),
			FirstBaseOffset:  tab.num(row, "first_batch_base_offset"),
			LastOffset:       tab.num(row, "last_batch_last_offset"),
			PartialTailBytes: int(tab.num(row, "partial_tail_bytes")),
			Hash:             tab.str(row, "sha256_16"),
		}
		f.Aborted, f.AbortedNull = parseAborted(t, tab.str(row, "aborted"))
		out = append(out, f)
	}
	return out
}

// parseAborted reads "null", "[]" or "[producer:first, producer:first]".
func parseAborted(t testing.TB, s string) (list []Aborted, null bool) {
	t.Helper()
	if s == "null" {
		return nil, true
	}
	inner, ok := strings.CutPrefix(strings.TrimSuffix(s, "]"), "[")
	if !ok {
		t.Fatalf("golden: aborted %q", s)
	}
	if inner == "" {
		return nil, false
	}
	for _, pair := range strings.Split(inner, ",") {
		id, first, _ := strings.Cut(strings.TrimSpace(pair), ":")
		list = append(list, Aborted{ProducerID: mustInt(t, id), FirstOffset: mustInt(t, first)})
	}
	return list, false
}

func mustInt(t testing.TB, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("golden: %v", err)
	}
	return n
}

// EpochEnd is one OffsetForLeaderEpoch query and its answer.
type EpochEnd struct {
	Query       int32
	Error       string
	LeaderEpoch int32 // −1 = unknown
	EndOffset   int64 // −1 = unknown
}

// EpochEnds returns the leader-epoch look-ups of the case.
func (c Case) EpochEnds(t testing.TB) []EpochEnd {
	t.Helper()
	tab := c.table(t, "epoch-end.tsv")
	var out []EpochEnd
	for _, row := range tab.rows {
		out = append(out, EpochEnd{
			Query:       int32(tab.num(row, "query_epoch")),
			Error:       tab.str(row, "error"),
			LeaderEpoch: int32(tab.num(row, "leader_epoch")),
			EndOffset:   tab.num(row, "end_offset"),
		})
	}
	return out
}

// Producer is one line of DescribeProducers.
type Producer struct {
	ProducerID       int64
	Epoch            int16
	LastSequence     int32
	LastTimestamp    int64
	CoordinatorEpoch int32
	CurrentTxnStart  int64 // −1 = none open
}

// Producers returns the active producers of the case.
func (c Case) Producers(t testing.TB) []Producer {
	t.Helper()
	tab := c.table(t, "producers.tsv")
	var out []Producer
	for _, row := range tab.rows {
		out = append(out, Producer{
			ProducerID:       tab.num(row, "producer_id"),
			Epoch:            int16(tab.num(row, "epoch")),
			LastSequence:     int32(tab.num(row, "last_sequence")),
			LastTimestamp:    tab.num(row, "last_timestamp"),
			CoordinatorEpoch: int32(tab.num(row, "coordinator_epoch")),
			CurrentTxnStart:  tab.num(row, "current_txn_start_offset"),
		})
	}
	return out
}

// Checkpoints returns, by file name, the lines of the data directory's checkpoint files that name this partition.
func (c Case) Checkpoints(t testing.TB) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	for _, line := range lines(c.ExpectText(t, "checkpoints.tsv")) {
		file, text, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("golden %s: checkpoints.tsv: %q", c.Name, line)
		}
		out[file] = append(out[file], text)
	}
	return out
}

// ToolCall is one call of a command line of Kafka's and what it printed.
type ToolCall struct {
	Args           []string // class name of the tool first
	Exit           int
	Stdout, Stderr []string // lines
}

// ToolCalls returns tools.tsv.
func (c Case) ToolCalls(t testing.TB) []ToolCall {
	t.Helper()
	var out []ToolCall
	for i, line := range lines(c.ExpectText(t, "tools.tsv"))[1:] {
		cells := strings.Split(line, "\t")
		last := len(cells) - 1
		if last < 3 {
			t.Fatalf("golden %s: tools.tsv:%d: %d columns", c.Name, i+2, len(cells))
		}
		out = append(out, ToolCall{
			Args:   strings.Fields(cells[0]),
			Exit:   int(mustInt(t, cells[1])),
			Stdout: joined(strings.Join(cells[2:last], "\t")), // the output itself holds tabs
			Stderr: joined(cells[last]),
		})
	}
	return out
}

func joined(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, " | ")
}

// Rows returns a .tsv of expect as maps from column name to text: for the few files without a parser of their own
// (events, topics, groups, group-list, transactions).
func (c Case) Rows(t testing.TB, name string) []map[string]string {
	t.Helper()
	tab := c.table(t, name)
	var out []map[string]string
	for _, row := range tab.rows {
		m := make(map[string]string, len(row))
		for column, i := range tab.columns {
			m[column] = row[i]
		}
		out = append(out, m)
	}
	return out
}

// ErrorAnswer is one line of errors.tsv: what was asked, in words, and the error and text that came back.
type ErrorAnswer struct{ What, Answer string }

// ErrorAnswers returns errors.tsv of the golden directory.
func ErrorAnswers(t testing.TB) []ErrorAnswer {
	t.Helper()
	var out []ErrorAnswer
	for _, line := range lines(readText(t, filepath.Join(Dir(), "errors.tsv")))[1:] {
		what, answer, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("golden: errors.tsv: %q", line)
		}
		out = append(out, ErrorAnswer{What: what, Answer: answer})
	}
	return out
}
