package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"tidemark/cmd/internal/cli"
	"tidemark/record"
)

var snapshotName = cli.Pattern(`^(\d{20})-(\d{10})(?:\.checkpoint)(?:\.part|\.deleted)?$`)

func (d *dumper) dumpLog(name string) error {
	base := filepath.Base(name)
	switch {
	case strings.HasSuffix(base, ".log"):
		start, err := baseOffset(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.out, "Log starting offset: %d\n", start)
	case base == "bootstrap.checkpoint":
		fmt.Fprintln(d.out, "KRaft bootstrap snapshot")
	default:
		parts := snapshotName().FindStringSubmatch(base)
		if parts == nil {
			return notSnapshot(base)
		}
		end, _ := strconv.ParseInt(parts[1], 10, 64) // digits only
		epoch, _ := strconv.ParseInt(parts[2], 10, 64)
		fmt.Fprintf(d.out, "Snapshot end offset: %d, epoch: %d\n", end, epoch)
	}
	log, err := openLog(name, name)
	if err != nil {
		return err
	}
	defer log.close()
	return d.dumpEntries(log)
}

// notSnapshot is how Kafka's tool ends over a .checkpoint that is no snapshot by its name.
func notSnapshot(base string) error {
	for _, part := range [][2]int{{0, 20}, {21, 31}} {
		if len(base) < part[1] {
			return cli.Fail("java.lang.StringIndexOutOfBoundsException", "begin %d, end %d, length %d", part[0], part[1],
				len(base))
		}
		if _, err := strconv.ParseInt(base[part[0]:part[1]], 10, 64); err != nil {
			return cli.Fail(classNumber, "For input string: \"%s\"", base[part[0]:part[1]])
		}
	}
	return cli.Fail(classNoElement, "No value present")
}

func (d *dumper) dumpEntries(log *logFile) error {
	end, err := log.sliceEnd(0, d.maxBytes)
	if err != nil {
		return err
	}
	pos, last := int64(0), int64(-1)
	var gaps [][2]int64
	var data []byte
	for {
		entry, ok, err := log.next(pos, end)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if data, err = log.bytes(entry, data); err != nil {
			return err
		}
		d.printEntry(entry, record.ValidCRC(data))
		if d.deep {
			if gaps, last, err = d.dumpRecords(entry, data, gaps, last); err != nil {
				return err
			}
		}
		pos += int64(entry.head.SizeBytes)
	}
	for _, gap := range lastOfEach(gaps) {
		d.nonConsecutive = find(d.nonConsecutive, log.name, gap)
	}
	if rest := end - pos; rest > 0 && d.maxBytes == math.MaxInt32 {
		fmt.Fprintf(d.out, "Found %d invalid bytes at the end of %s\n", rest, filepath.Base(log.name))
	}
	return nil
}

func (d *dumper) printEntry(e logEntry, valid bool) {
	h := e.head
	timestamp, kind := h.MaxTimestamp, h.TimestampType()
	if h.Magic >= 2 {
		horizon := int64(-1)
		if h.HasDeleteHorizon() {
			horizon = h.BaseTimestamp
		}
		fmt.Fprintf(d.out, "baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d "+
			"producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %t isControl: %t deleteHorizonMs: %s",
			h.BaseOffset, h.LastOffset, h.Count, h.BaseSequence, h.LastSequence(), h.ProducerID, h.ProducerEpoch,
			h.LeaderEpoch, h.IsTransactional(), h.IsControl(), optionalLong(horizon))
	} else {
		fmt.Fprintf(d.out, "offset: %d", h.LastOffset)
	}
	fmt.Fprintf(d.out, " position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %t\n",
		e.pos, kind, timestamp, h.SizeBytes, h.Magic, h.Codec(), h.CRC, valid)
}

// dumpRecords shows the records of one entry. gaps and last carry what is known of
// offsets that do not follow each other.
func (d *dumper) dumpRecords(e logEntry, data []byte, gaps [][2]int64, last int64) ([][2]int64, int64, error) {
	if err := d.it.Reset(data, record.IterOptions{MaxBytes: math.MaxInt32}); err != nil {
		return gaps, last, recordFailure(err)
	}
	defer d.it.Close()
	sums := oldChecksums(e.head, data)
	for i := 0; d.it.Next(); i++ {
		r := d.it.Record()
		if r.Offset != last+1 {
			gaps = append(gaps, [2]int64{last, r.Offset})
		}
		last = r.Offset
		if !d.skipMetadata {
			d.printMetadata(e.head, r)
			if e.head.Magic < 2 {
				sum := oldChecksum{rebuiltCRC(r), true}
				if i < len(sums) {
					sum = sums[i]
				}
				fmt.Fprintf(d.out, " isValid: %t crc: %d", sum.valid, sum.crc)
			}
			if e.head.IsControl() {
				if err := d.printControl(r); err != nil {
					return gaps, last, err
				}
			}
		}
		if d.printContents && !e.head.IsControl() {
			if err := d.printContent(r); err != nil {
				return gaps, last, err
			}
		}
		d.out.WriteByte('\n') //nolint:errcheck // Flush tells
	}
	return gaps, last, recordFailure(d.it.Err())
}

// printMetadata is called for every record: it allocates nothing.
func (d *dumper) printMetadata(h record.Header, r *record.Record) {
	b := append(d.line[:0], "| offset: "...)
	b = append(strconv.AppendInt(b, r.Offset, 10), ' ')
	b = append(append(b, h.TimestampType().String()...), ": "...)
	b = append(strconv.AppendInt(b, r.Timestamp, 10), " keySize: "...)
	b = append(strconv.AppendInt(b, int64(r.KeySize), 10), " valueSize: "...)
	b = strconv.AppendInt(b, int64(r.ValueSize), 10)
	if h.Magic >= 2 {
		sequence := record.NoSequence
		if h.BaseSequence >= 0 {
			sequence = record.AddSequence(h.BaseSequence, int32(r.Offset-h.BaseOffset))
		}
		b = append(b, " sequence: "...)
		b = append(strconv.AppendInt(b, int64(sequence), 10), " headerKeys: ["...)
		for i, header := range r.Headers {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, cli.JavaText(header.Key)...)
		}
		b = append(b, ']')
	}
	d.line = b
	d.out.Write(b) //nolint:errcheck // Flush tells
}

type oldChecksum struct {
	crc   uint32
	valid bool
}

// oldChecksums are those of the messages of an entry of magic 0 or 1: the entry's own, or
// those of the messages inside it. There are none for a set that only the Iterator can
// decompress: the LZ4 frames of magic 0.
func oldChecksums(h record.Header, data []byte) []oldChecksum {
	if h.Magic >= 2 {
		return nil
	}
	if h.Codec() == record.None {
		return []oldChecksum{{h.CRC, record.ValidCRC(data)}}
	}
	inner, err := record.AppendDecompressed(nil, h.Codec(), wrapped(h, data), math.MaxInt32)
	if err != nil {
		return nil
	}
	var sums []oldChecksum
	for rest := inner; len(rest) > 0; {
		head, entry, after, err := record.NextEntry(rest)
		if err != nil {
			break
		}
		sums = append(sums, oldChecksum{head.CRC, record.ValidCRC(entry)})
		rest = after
	}
	return sums
}

// rebuiltCRC is the checksum that a message of magic 0 must have.
func rebuiltCRC(r *record.Record) uint32 {
	message := []byte{0, 0} // magic, attributes
	for _, field := range [][]byte{r.Key, r.Value} {
		n := uint32(len(field))
		if field == nil {
			n = math.MaxUint32
		}
		message = append(binary.BigEndian.AppendUint32(message, n), field...)
	}
	return crc32.ChecksumIEEE(message)
}

// wrapped is the value of a compressed message of magic 0 or 1, empty when the lengths
// inside do not fit.
func wrapped(h record.Header, data []byte) []byte {
	pos := 18 // of the key's length; see record for the layout
	if h.Magic == 1 {
		pos = 26
	}
	for range 2 { // past the key, then at the value
		if pos+4 > len(data) {
			return nil
		}
		n := max(0, int(int32(binary.BigEndian.Uint32(data[pos:]))))
		pos += 4
		if n > len(data)-pos {
			return nil
		}
		if pos+n == len(data) {
			return data[pos:]
		}
		pos += n
	}
	return nil
}

func (d *dumper) printControl(r *record.Record) error {
	kind, message, err := record.ParseControl(r.Key, r.Value)
	if err != nil {
		return recordFailure(err)
	}
	switch m := message.(type) {
	case record.EndTxn:
		name := "ABORT"
		if m.Commit {
			name = "COMMIT"
		}
		fmt.Fprintf(d.out, " endTxnMarker: %s coordinatorEpoch: %d", name, m.CoordinatorEpoch)
	case record.LeaderChange:
		return d.printJSON(" LeaderChange: ", leaderChangeJSON(m))
	case record.SnapshotHeader:
		return d.printJSON(" SnapshotHeader ", struct {
			Version   int16 `json:"version"`
			Timestamp int64 `json:"lastContainedLogTimestamp"`
		}{m.Version, m.LastContainedLogTimestamp})
	case record.SnapshotFooter:
		return d.printJSON(" SnapshotFooter ", struct {
			Version int16 `json:"version"`
		}{m.Version})
	case record.KRaftVersion:
		return d.printJSON(" KRaftVersion ", struct {
			Version      int16 `json:"version"`
			KRaftVersion int16 `json:"kRaftVersion"`
		}{m.Version, m.KRaftVersion})
	case record.Voters:
		return d.printJSON(" KRaftVoters ", votersJSON(m))
	default:
		fmt.Fprintf(d.out, " controlType: UNKNOWN(%d)", int16(kind))
	}
	return nil
}

func (d *dumper) printJSON(label string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "%s%s", label, data)
	return err
}

type voterJSON struct {
	ID        int32   `json:"voterId"`
	Directory *string `json:"voterDirectoryId,omitempty"`
}

func leaderChangeJSON(m record.LeaderChange) any {
	voters := func(list []record.Voter) []voterJSON {
		shown := make([]voterJSON, len(list))
		for i, v := range list {
			shown[i].ID = v.ID
			if m.Version >= 1 {
				id := base64.RawURLEncoding.EncodeToString(v.DirectoryID[:])
				shown[i].Directory = &id
			}
		}
		return shown
	}
	return struct {
		Version  int16       `json:"version"`
		LeaderID int32       `json:"leaderId"`
		Voters   []voterJSON `json:"voters"`
		Granting []voterJSON `json:"grantingVoters"`
	}{m.Version, m.LeaderID, voters(m.Voters), voters(m.GrantingVoters)}
}

type endpointJSON struct {
	Name string `json:"name"`
	Host string `json:"host"`
	Port uint16 `json:"port"`
}

type rangeJSON struct {
	Min int16 `json:"minSupportedVersion"`
	Max int16 `json:"maxSupportedVersion"`
}

type voterInfoJSON struct {
	ID        int32          `json:"voterId"`
	Directory string         `json:"voterDirectoryId"`
	Endpoints []endpointJSON `json:"endpoints"`
	Versions  rangeJSON      `json:"kRaftVersionFeature"`
}

func votersJSON(m record.Voters) any {
	shown := make([]voterInfoJSON, len(m.Voters))
	for i, v := range m.Voters {
		shown[i] = voterInfoJSON{v.ID, base64.RawURLEncoding.EncodeToString(v.DirectoryID[:]), []endpointJSON{},
			rangeJSON{v.MinKRaftVersion, v.MaxKRaftVersion}}
		for _, e := range v.Endpoints {
			shown[i].Endpoints = append(shown[i].Endpoints, endpointJSON(e))
		}
	}
	return struct {
		Version int16           `json:"version"`
		Voters  []voterInfoJSON `json:"voters"`
	}{m.Version, shown}
}

// recordFailure names an error of decoding as the exception that Kafka's tool ends with.
func recordFailure(err error) error {
	var invalid *record.InvalidRecordError
	var corrupt *record.CorruptError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid):
		return cli.Fail("org.apache.kafka.common.InvalidRecordException", "%s", invalid.Reason)
	case errors.As(err, &corrupt):
		return cli.Fail(classCorrupt, "%s", corrupt.Reason)
	}
	return cli.Fail(classKafkaException, "%s", err)
}
