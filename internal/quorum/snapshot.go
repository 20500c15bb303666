package quorum

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"time"

	"tidemark/internal/metadata"
	"tidemark/record"
	"tidemark/vfs"
)

// maxBatchBytes is the size from which on records go to another batch.
const maxBatchBytes = 8 << 20

// voters is what the log says of the quorum itself, in control records. With
// kraft.version 0 it says nothing; the voters then stand in quorum-state.
type voters struct {
	kraftVersion int16
	list         *record.Voters
}

// note takes up a control record.
func (v *voters) note(m record.ControlMessage) {
	switch m := m.(type) {
	case record.KRaftVersion:
		v.kraftVersion = m.KRaftVersion
	case record.Voters:
		v.list = &m
	}
}

// messages are the control records that say it again.
func (v *voters) messages() []record.ControlMessage {
	if v.kraftVersion == 0 {
		return nil
	}
	list := []record.ControlMessage{record.KRaftVersion{KRaftVersion: v.kraftVersion}}
	if v.list != nil {
		list = append(list, *v.list)
	}
	return list
}

// snapshotContent is what a snapshot file holds.
type snapshotContent struct {
	image  *metadata.Image // positioned by the caller
	voters voters
	// lastTimestampMs is the append time of the last record of the log in it.
	lastTimestampMs int64
	records         []metadata.Record
}

// readSnapshot reads a snapshot or bootstrap file:
//
//	control batch: snapshot header [, kraft.version, voters]
//	batches of metadata records
//	control batch: snapshot footer
//
// A file that is damaged or has no footer is a *record.CorruptError.
func readSnapshot(fsys vfs.FS, name string) (*snapshotContent, error) {
	return (&snapshotReader{name: name}).read(fsys)
}

type snapshotReader struct {
	name     string
	maxBatch int               // as MaxBatchBytes of a scanner
	unknown  func(error) error // see eachRecord

	scan           *record.Scanner
	delta          *metadata.Delta
	out            snapshotContent
	header, footer bool
}

func (r *snapshotReader) read(fsys vfs.FS) (*snapshotContent, error) {
	f, err := fsys.Open(r.name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r.delta = metadata.NewDelta(metadata.NewImage())
	r.scan = record.NewScanner(f, 0, info.Size())
	r.scan.File, r.scan.MaxBatchBytes = r.name, r.maxBatch
	for r.scan.Next() {
		if err := r.batch(); err != nil {
			return nil, fmt.Errorf("read snapshot %s: %w", r.name, err)
		}
	}
	switch {
	case r.scan.Err() != nil:
		return nil, fmt.Errorf("read snapshot %s: %w", r.name, r.scan.Err())
	case !r.header || !r.footer:
		return nil, fmt.Errorf("read snapshot %s: %w", r.name, &record.CorruptError{
			File: r.name, Pos: info.Size(), Offset: -1, Reason: "the snapshot has no header or no footer"})
	}
	r.out.image = r.delta.Image()
	return &r.out, nil
}

func (r *snapshotReader) batch() error {
	entry, err := r.scan.Batch()
	if err != nil {
		return err
	}
	if !record.ValidCRC(entry) || r.footer {
		return &record.CorruptError{File: r.name, Pos: r.scan.Pos(), Offset: r.scan.Header().BaseOffset,
			Reason: "the checksum is wrong or the batch follows the footer"}
	}
	return eachRecord(entry, r.control, func(rec metadata.Record) error {
		r.out.records = append(r.out.records, rec)
		return r.delta.Replay(rec)
	}, r.unknown)
}

// at is the image, positioned at the end of a snapshot of that id.
func (c *snapshotContent) at(id SnapshotID) *metadata.Image {
	d := metadata.NewDelta(c.image)
	d.Advance(id.EndOffset-1, id.Epoch, c.lastTimestampMs)
	return d.Image()
}

// decodeBatch decodes a batch of the log; control is called for its control records.
func decodeBatch(h record.Header, entry []byte, control func(record.ControlMessage) error,
	unknown func(error) error) (metadata.Batch, error) {
	b := metadata.Batch{
		BaseOffset: h.BaseOffset, LastOffset: h.LastOffset, Epoch: h.LeaderEpoch, TimestampMs: h.MaxTimestamp,
	}
	err := eachRecord(entry, control, func(rec metadata.Record) error {
		b.Records = append(b.Records, rec)
		return nil
	}, unknown)
	return b, err
}

func (r *snapshotReader) control(m record.ControlMessage) error {
	switch m := m.(type) {
	case record.SnapshotHeader:
		r.header, r.out.lastTimestampMs = true, m.LastContainedLogTimestamp
	case record.SnapshotFooter:
		r.footer = true
	default:
		r.out.voters.note(m)
	}
	return nil
}

// eachRecord calls one of the functions for each record of a batch. Control
// records of an unknown type are passed over. A record of metadata that cannot be
// decoded is an error, and when unknown is given what that makes of it.
func eachRecord(entry []byte, control func(record.ControlMessage) error, data func(metadata.Record) error,
	unknown func(error) error) error {
	it, err := record.NewIterator(entry, record.IterOptions{})
	if err != nil {
		return err
	}
	defer it.Close()
	isControl := it.Header().IsControl()
	for it.Next() {
		rec := it.Record()
		if !isControl {
			m, err := metadata.DecodeRecord(rec.Value)
			switch {
			case err == nil:
				err = data(m)
			case unknown != nil:
				err = unknown(fmt.Errorf("record at offset %d passed over: %w", rec.Offset, err))
			}
			if err != nil {
				return fmt.Errorf("offset %d: %w", rec.Offset, err)
			}
			continue
		}
		_, m, err := record.ParseControl(rec.Key, rec.Value)
		if err != nil {
			return fmt.Errorf("offset %d: %w", rec.Offset, err)
		}
		if m != nil {
			if err := control(m); err != nil {
				return fmt.Errorf("offset %d: %w", rec.Offset, err)
			}
		}
	}
	return it.Err()
}

// snapshotWriter writes the batches of a snapshot.
type snapshotWriter struct {
	f      vfs.File
	pos    int64
	offset int64 // of the next record
	epoch  int32
	now    int64
}

func (w *snapshotWriter) options() record.BuilderOptions {
	o := record.DefaultBuilderOptions()
	o.BaseOffset, o.LeaderEpoch = w.offset, w.epoch
	return o
}

func (w *snapshotWriter) control(messages ...record.ControlMessage) error {
	batch, err := record.ControlBatch(w.options(), w.now, messages...)
	if err != nil {
		return err
	}
	return w.write(batch)
}

func (w *snapshotWriter) write(batch record.Batch) error {
	if _, err := w.f.WriteAt(batch, w.pos); err != nil {
		return err
	}
	w.pos += int64(len(batch))
	w.offset = batch.NextOffset()
	return nil
}

func (w *snapshotWriter) records(records iter.Seq[metadata.Record]) error {
	b := record.NewBuilder(w.options())
	var value []byte
	for rec := range records {
		var err error
		if value, err = rec.AppendTo(value[:0]); err != nil {
			return err
		}
		if b.Count() > 0 && b.SizeBytes()+len(value) > maxBatchBytes-recordOverhead {
			if err := w.write(b.Bytes()); err != nil {
				return err
			}
			b.Reset(w.options())
		}
		if err := b.Append(w.now, nil, value, nil); err != nil {
			return err
		}
	}
	if b.Count() == 0 {
		return nil
	}
	return w.write(b.Bytes())
}

// recordOverhead bounds what a record adds to its value in a batch.
const recordOverhead = 32

// writeSnapshot writes a snapshot file whole or not at all. lastMs is the append
// time of the last record of the log in it.
func writeSnapshot(fsys vfs.FS, name string, epoch int32, lastMs int64, now time.Time, v voters,
	records iter.Seq[metadata.Record]) error {
	part := name + ".part"
	if err := fsys.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := fsys.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, snapshotMode(name))
	if err != nil {
		return err
	}
	w := snapshotWriter{f: f, epoch: epoch, now: now.UnixMilli()}
	header := []record.ControlMessage{record.SnapshotHeader{LastContainedLogTimestamp: lastMs}}
	err = w.control(append(header, v.messages()...)...)
	if err == nil {
		err = w.records(records)
	}
	if err == nil {
		err = w.control(record.SnapshotFooter{})
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = fsys.Rename(part, name)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write snapshot %s: %w", name, err)
	}
	return nil
}

// snapshotMode is read-only for a snapshot, as Kafka freezes it.
func snapshotMode(name string) os.FileMode {
	if filepath.Base(name) == BootstrapFile {
		return 0o644
	}
	return 0o400
}
